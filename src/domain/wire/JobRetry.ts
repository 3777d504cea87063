// Whether a transcription job whose run has failed is tried again, and when: a pure decision of the job workers.
import { type EdgeError, failureOf } from "./Failures.ts"

/** New credit must be noticed within 5 s (protocol 5.2); balances are up to 2 s old. */
const creditLookMs = 2_000
/** An operator loads a model again that was unloaded. A guess. */
const unloadedLookMs = 10_000
/** A crashed engine is back after 0.1 s and its loading time. A guess. */
const engineBackMs = 1_000

/** Times an engine may fail at one place of a file before the job is given up: the audio may be what crashes it. */
export const maxEngineFailures = 3

/** The job waits and runs again. Any other failure is final: the file's or the request's own. */
export const isTransient = (error: EdgeError): boolean => failureOf(error).retry !== "no"

/** Milliseconds until the next attempt; undefined where the job is given up. */
export const retryAfterMs = (error: EdgeError, engineFailuresHere: number): number | undefined => {
  if (!isTransient(error)) return undefined
  switch (error._tag) {
    case "PaymentRequired":
      return creditLookMs
    case "ModelNotLoaded":
      return unloadedLookMs
    case "EngineFailed":
      return engineFailuresHere >= maxEngineFailures ? undefined : engineBackMs
    default:
      return failureOf(error).retryAfterMs?.(error) ?? engineBackMs
  }
}
