// How often a property is tried: a property of test/properties runs in `fast` and, more often, in `long`.
import { inject } from "vitest"

/** `few` in an everyday run, `many` in `npm run test:long`. */
export const runs = (few: number, many: number): number => (inject("group") === "long" ? many : few)
