// Decides whether and when a failed transcription job is tried again. Pure.
import { type EdgeError, failureOf } from "./Failures.ts"

/**
 * Interval of attempts for a job without credit. Protocol 5.2 allows 5 s until new credit is noticed; balances are up
 * to 2 s old.
 */
const creditRetryMs = 2_000
/** Interval of attempts for a job whose model an operator has unloaded. A guess. */
const unloadedRetryMs = 10_000
/** A crashed engine is back after 0.1 s and its loading time. A guess. */
const engineRetryMs = 1_000

/** How often an engine may fail at one place of a file before the job fails: the audio may be the cause. */
export const maxEngineFailures = 3

/** Temporary failures, after which the job waits. All others are caused by the file or the request. */
export const isTransient = (error: EdgeError): boolean => failureOf(error).retry !== "no"

/** Milliseconds until the next attempt. Undefined if there is none. */
export const retryAfterMs = (error: EdgeError, engineFailuresHere: number): number | undefined => {
  if (!isTransient(error)) return undefined
  switch (error._tag) {
    case "PaymentRequired":
      return creditRetryMs
    case "ModelNotLoaded":
      return unloadedRetryMs
    case "EngineFailed":
      return engineFailuresHere >= maxEngineFailures ? undefined : engineRetryMs
    default:
      return failureOf(error).retryAfterMs?.(error) ?? engineRetryMs
  }
}
