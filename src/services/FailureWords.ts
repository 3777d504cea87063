// Why an answer failed, as a text for the operator; ErrorBody makes the text for callers. Pure. The text may name
// files, signals and devices, and never holds a caller's text.
import { Cause } from "effect"
import type { ModelSnapshot } from "#actors/model/ModelSnapshot.ts"
import { exceptionReason } from "#domain/process/PlainLine.ts"
import { type EdgeError, isEdgeError, isRefusal } from "#domain/wire/Failures.ts"
import { detailOf } from "#http/ErrorBody.ts"

export interface FailureWords {
  /** The error's tag, or `Defect` for an exception that nothing expected. */
  readonly error: string
  readonly reason: string
  readonly model?: string
  readonly action?: string
}

/** A model by its id. */
export type FindModel = (id: string) => ModelSnapshot | undefined

const megabytes = (bytes: number): number => Math.ceil(Math.max(0, bytes) / 1024 ** 2)

const logs = (model: string): string => `edgewise logs ${model} shows what its engine printed`

/** Why the model does not answer at present, as far as the node knows. */
const standing = (view: ModelSnapshot | undefined): string => {
  if (view === undefined) return "the model is not deployed here"
  const status = `its status is ${view.status}`
  return view.lastFailure === "" ? status : `${status}: ${view.lastFailure}`
}

const wordsOfError = (error: EdgeError, find: FindModel): FailureWords => {
  const about = { error: error._tag }
  switch (error._tag) {
    case "EngineFailed": {
      const { detail, model, reason } = error
      return {
        ...about,
        model,
        reason: `the engine ${reason}: ${exceptionReason(detail)}`,
        action: logs(model),
      }
    }
    case "SynthesisFailed": {
      const { detail, model, voices } = error
      // Not the name of the requested voice, which is the caller's text.
      const has = voices === undefined ? "" : `; the model has ${voices.join(", ")}`
      return { ...about, model, reason: exceptionReason(detail + has) }
    }
    case "ModelUnavailable": {
      const { model } = error
      const action = `mend what the reason says, then edgewise models load ${model}; ${logs(model)}`
      return { ...about, model, reason: standing(find(model)), action }
    }
    case "ModelNotLoaded":
      return { ...about, model: error.model, reason: standing(find(error.model)) }
    case "InsufficientMemory": {
      const { device, freeBytes, model, wantedBytes } = error
      const reason = `needs ${megabytes(wantedBytes)} MB, ${megabytes(freeBytes)} MB are free on ${device}`
      const action = "unload another model, raise EDGEWISE_MEMORY_MB, or set EDGEWISE_EVICT_IDLE=true"
      return { ...about, model, reason, action }
    }
    case "AtCapacity": {
      const { model, retryAfterMs } = error
      const reason = `every slot is busy and the queue is full; free in about ${Math.ceil(retryAfterMs / 1000)} s`
      return {
        ...about,
        model,
        reason,
        action: "more slots or a longer runtime.waitingLine, or another node",
      }
    }
    case "MemoryPressure":
      return {
        ...about,
        reason: "the node's memory is nearly full",
        action: "unload models, or raise EDGEWISE_MEMORY_MB",
      }
    case "NoHealthyRegion":
      return { ...about, reason: "no region is healthy: none answers its health check" }
    case "StoreDown":
      return {
        ...about,
        reason: "the store cannot be read or written",
        action: "look at the database or the disk",
      }
    case "AuthUnavailable":
      return {
        ...about,
        reason: "the keys that session tokens are checked with cannot be read",
        action: "look at the auth role, or at EDGEWISE_AUTH_JWKS_URL",
      }
    case "UnloadFailed":
      return {
        ...about,
        model: error.model,
        reason: `its process has not ended and holds ${megabytes(error.heldBytes)} MB`,
        action: "look for a driver that does not let the process go",
      }
    default:
      return { ...about, reason: detailOf(error) }
  }
}

/** The answer is a 4xx: the request was refused, and nothing on this side has failed. */
export const wasRefused = (failure: unknown): boolean => {
  const error = Cause.isCause(failure) ? Cause.squash(failure) : failure
  return isEdgeError(error) && isRefusal(error)
}

/** `failure` is an error of Errors, a cause, a sentence, or any thrown value. */
export const failureWords = (failure: unknown, find: FindModel): FailureWords => {
  if (Cause.isCause(failure)) return failureWords(Cause.squash(failure), find)
  if (isEdgeError(failure)) return wordsOfError(failure, find)
  if (typeof failure === "string") return { error: "Refused", reason: failure }
  if (failure === undefined) return { error: "Unknown", reason: "the handler ended without an answer" }
  return {
    error: "Defect",
    reason: exceptionReason(failure),
    action: "this is a fault in edgewise: report it with this line",
  }
}
