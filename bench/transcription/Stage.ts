// Everything the transcription suite measures with, started once: a node, the clients and the bare loop, each a process
// of its own. Called by the suite.
import { Effect, type Scope } from "effect"
import { type Child, type ChildFailed, startChild } from "../support/Child.ts"
import { type Gateway, startGateway } from "../support/Gateway.ts"
import type { BareLoopDesk } from "./bareLoopMain.ts"
import { models } from "./Models.ts"
import type { SpeakerDesk } from "./speakerMain.ts"

export interface Stage {
  readonly gateway: Gateway
  readonly speakers: Child<SpeakerDesk>
  readonly bare: Child<BareLoopDesk>
}

export const startStage = (profileDir?: string): Effect.Effect<Stage, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const gateway = yield* startGateway({ models, profileDir })
    const speakers = yield* startChild<SpeakerDesk>({
      name: "speakers",
      entry: new URL("./speakerMain.ts", import.meta.url),
    })
    const bare = yield* startChild<BareLoopDesk>({
      name: "bare loop",
      entry: new URL("./bareLoopMain.ts", import.meta.url),
    })
    // The model has loaded, a decoder waits, and the code on the way has been compiled.
    yield* speakers.ask("hear", { target: gateway.target, seconds: 4, count: 10 })
    return { gateway, speakers, bare }
  })
