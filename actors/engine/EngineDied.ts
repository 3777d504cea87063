// How an engine has ended other than by an order, and whether that uses one of the restarts that it is allowed.
import { Cause, Schema } from "effect"
import * as Specifications from "../Specifications.ts"
import type { EngineExit } from "./EngineProcess.ts"

export class EngineDied extends Schema.TaggedError<EngineDied>()("EngineDied", {
  reason: Schema.Literals(["crashed", "hung"]),
  detail: Schema.String,
  /** Whether a request may have caused it. */
  ofRequest: Schema.Boolean,
  /** Whether it counts against the engine, see CrashSuspects. */
  counts: Schema.Boolean,
}) {
  override get message() {
    return this.detail
  }
}

/** Signals of an operator, or of the kernel when the machine's memory is full: assumed not to be caused by a request. */
const fromOutside: ReadonlySet<string> = new Set(["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"])

/** Whether the crash is attributed to users whose requests were open at an earlier crash. */
export const isExcused = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((one) => Cause.isFailReason(one) && one.error instanceof EngineDied && !one.error.counts)

export const exited = ({ code, signal }: EngineExit): EngineDied =>
  new EngineDied({
    reason: "crashed",
    detail: signal === null ? `exit status ${code}` : `signal ${signal}`,
    ofRequest: signal === null || !fromOutside.has(signal),
    counts: true,
  })

const { intensity, periodMs } = Specifications.engine.intensity

/** The log text of a restart; `nth` counts the restarts in the period. */
export const restartDetail = (nth: number, excused: boolean): string => {
  const allowed = `${intensity} in ${periodMs / 1000} s`
  return excused
    ? `a restart that is not counted towards the ${allowed}: a user of an earlier crash had a request in the engine`
    : `restart ${nth} of at most ${allowed}`
}

/** The log text of an engine that is not restarted any more, after this many restarts. */
export const gaveUpDetail = (restarts: number): string =>
  `it ended ${restarts + 1} times within ${periodMs / 1000} s`
