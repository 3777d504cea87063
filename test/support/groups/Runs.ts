// Number of cases of a property: a property of test/properties runs in `fast` and, with more cases, in `long`.
import { inject } from "vitest"

/** `few` in `npm test`, `many` in `npm run test:long`. */
export const runs = (few: number, many: number): number => (inject("group") === "long" ? many : few)
