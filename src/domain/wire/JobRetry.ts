// Decides whether and when a failed transcription job is tried again. Pure.
import type {
  AtCapacity,
  Draining,
  EngineFailed,
  InsufficientMemory,
  MemoryPressure,
  ModelNotLoaded,
  ModelUnavailable,
  PaymentRequired,
} from "./Errors.ts"

/** Temporary failures, after which the job waits. All others are caused by the file or the request. */
export type Passing =
  | AtCapacity
  | Draining
  | EngineFailed
  | InsufficientMemory
  | MemoryPressure
  | ModelNotLoaded
  | ModelUnavailable
  | PaymentRequired

const passing = new Set<string>([
  "AtCapacity",
  "Draining",
  "EngineFailed",
  "InsufficientMemory",
  "MemoryPressure",
  "ModelNotLoaded",
  "ModelUnavailable",
  "PaymentRequired",
] satisfies ReadonlyArray<Passing["_tag"]>)

export const passes = (error: { readonly _tag: string }): error is Passing => passing.has(error._tag)

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

/** Milliseconds until the next attempt. Undefined if there is none. */
export const retryAfterMs = (error: Passing, engineFailuresHere: number): number | undefined => {
  switch (error._tag) {
    case "PaymentRequired":
      return creditRetryMs
    case "ModelNotLoaded":
      return unloadedRetryMs
    case "EngineFailed":
      return engineFailuresHere >= maxEngineFailures ? undefined : engineRetryMs
    case "AtCapacity":
    case "InsufficientMemory":
    case "MemoryPressure":
    case "ModelUnavailable":
      return error.retryAfterMs
    case "Draining":
      return engineRetryMs
  }
}
