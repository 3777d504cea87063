// What a reply may be as a whole: text that is free until a marker, then rules.
import type { Rules } from "./Expression.ts"

/** What a reply may be. First any text until one of `until` of the first stage, then of the second, …; the rules hold what follows. */
export interface ReplyShape {
  readonly stages: ReadonlyArray<{
    readonly until: ReadonlyArray<string>
    /** The reply may end here. */
    readonly mayEnd: boolean
  }>
  readonly rules: Rules
}
