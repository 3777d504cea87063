// How much of a test runs in `npm test`. A file that imports this one runs in `long` too (Groups.ts), with more cases.
import { inject, type TestOptions } from "vitest"
import { onlyWhere } from "./Needs.ts"

/** Whether the file runs in `npm run test:long`, for tests that only run there. */
export const isLong: boolean = inject("group") === "long"

/** Options of a test, or of a group of them, that only `npm run test:long` runs. The end of `npm test` says how many there are. */
export const inLong: TestOptions = onlyWhere(isLong, "`npm run test:long` runs them")

/** Number of cases, rounds or seconds: `few` in `npm test`, `many` in `npm run test:long`. */
export const runs = (few: number, many: number): number => (isLong ? many : few)
