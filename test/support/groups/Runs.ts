// How much of a test runs in `npm test`. A file that imports this one runs in `long` too (Groups.ts), with more cases.
import { inject } from "vitest"

/** Number of cases, rounds or seconds: `few` in `npm test`, `many` in `npm run test:long`. */
export const runs = (few: number, many: number): number => (inject("group") === "long" ? many : few)
