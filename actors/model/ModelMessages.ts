// The messages of the Model actor: load, unload, retire. Model itself sends them for operators, requests and the registry,
// and passes the replies on to them.
import type { InsufficientMemory, ModelUnavailable, UnloadFailed } from "#domain/wire/Errors.ts"
import type { EngineKind, Facts } from "#engines/protocol/Verbs.ts"
import { Message } from "../Actor.ts"

export type LoadError = InsufficientMemory | ModelUnavailable

/** Brings the model into memory; does nothing when it is there, unless `force`. */
export class Load extends Message<Facts<EngineKind>, LoadError> {
  readonly _tag = "Load"
  readonly force: boolean
  constructor(force: boolean) {
    super()
    this.force = force
  }
}

/** What an unload has done. */
export interface Unloaded {
  /** Whether anything was in memory. */
  readonly was: boolean
  /** What its process held before; nothing of it is held after. */
  readonly freedBytes: number
  readonly tookMs: number
}

/** Takes the model out of memory and answers when its process is gone, or says that it is not. */
export class Unload extends Message<Unloaded, ModelUnavailable | UnloadFailed> {
  readonly _tag = "Unload"
}

/** Takes the model out of memory if it is not in use; the next request loads it again. False if it is in use. */
export class Retire extends Message<boolean> {
  readonly _tag = "Retire"
  /** The model that needs its memory; undefined if it goes for being idle. */
  readonly forModel: string | undefined
  constructor(forModel: string | undefined) {
    super()
    this.forModel = forModel
  }
}

/** Gives back what a model still claims whose engine has been given up. */
export class Discard extends Message<void> {
  readonly _tag = "Discard"
}

export type ModelMessage = Load | Unload | Retire | Discard
