// What becomes of a transcription job whose run has failed: a pure decision. Used by the job workers; the error names
// are those of Errors.
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

/** Failures that pass by themselves: the job waits. Any other is the file's or the request's own. */
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

/** The contract lets new credit take 5 s to be noticed; balances are up to 2 s old. */
const creditLookMs = 2_000
/** A model that an operator has taken away comes back by hand. A guess. */
const unloadedLookMs = 10_000
/** A crashed engine is back after 0.1 s and its loading time. A guess. */
const engineBackMs = 1_000

/** Times an engine may fail at one place of a file before the job is given up: the audio may be what kills it. */
export const maxEngineFailures = 3

/** Milliseconds until the next attempt, or undefined where there shall be none. */
export const retryAfterMs = (error: Passing, engineFailuresHere: number): number | undefined => {
  switch (error._tag) {
    case "PaymentRequired":
      return creditLookMs
    case "ModelNotLoaded":
      return unloadedLookMs
    case "EngineFailed":
      return engineFailuresHere >= maxEngineFailures ? undefined : engineBackMs
    case "AtCapacity":
    case "InsufficientMemory":
    case "MemoryPressure":
    case "ModelUnavailable":
      return error.retryAfterMs
    case "Draining":
      return engineBackMs
  }
}
