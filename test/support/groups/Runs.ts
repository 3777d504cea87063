// How much of a test runs in `npm test`. A file that imports this one runs in `long` too (Groups.ts), with more cases.
import { inject } from "vitest"

/** Whether the file runs in `npm run test:long`, for tests that only run there. */
export const isLong: boolean = inject("group") === "long"

/** Number of cases, rounds or seconds: `few` in `npm test`, `many` in `npm run test:long`. */
export const runs = (few: number, many: number): number => (isLong ? many : few)
