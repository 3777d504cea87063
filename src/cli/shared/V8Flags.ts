// How much garbage V8 keeps in the gateway before it collects all of it. Called by Serve, once, before anything is
// built; engines and decoders are processes of their own and keep V8's settings.
import { setFlagsFromString } from "node:v8"

/**
 * By how much the old generation may grow over what was alive at the last full collection. V8's own choice lets a heap
 * of 45 MB double: 10,000 hostile uploads then cost 62 to 113 MiB that nobody uses, with 20 % they cost 5, and 29 full
 * collections in 2,500 uploads instead of 12, mostly beside the program (measured). Work whose garbage dies young, as
 * tokens on their way through, causes none either way.
 */
const growthPercent = 20

export const keepHeapSmall = (): void => setFlagsFromString(`--heap-growing-percent=${growthPercent}`)
