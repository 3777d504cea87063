// The processes of the transcription suite, started once: a node, the clients and the bare loop.
import { Effect, type Scope } from "effect"
import { type Child, type ChildFailed, startChild } from "../support/Child.ts"
import { type Gateway, startGateway } from "../support/Gateway.ts"
import type { BareLoopCommands } from "./bareLoopMain.ts"
import { demonstration, entryOf, type Recogniser } from "./Models.ts"
import type { SpeakerCommands } from "./speakerMain.ts"

export interface Stage {
  readonly gateway: Gateway
  readonly speakers: Child<SpeakerCommands>
  readonly bare: Child<BareLoopCommands>
}

interface StageOptions {
  readonly recogniser: Recogniser
  readonly profileDir: string | undefined
  /** Files of 4 s that are transcribed and not counted. */
  readonly warmUps: number
}

/** The demonstration weights are fast and need many calls until all code is compiled. */
export const demonstrationStage = { recogniser: demonstration, warmUps: 10 }

export const startStage = ({
  profileDir,
  recogniser,
  warmUps,
}: StageOptions): Effect.Effect<Stage, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const gateway = yield* startGateway({ models: [entryOf(recogniser)], profileDir })
    const speakers = yield* startChild<SpeakerCommands>({
      name: "speakers",
      entry: new URL("./speakerMain.ts", import.meta.url),
    })
    const bare = yield* startChild<BareLoopCommands>({
      name: "bare loop",
      entry: new URL("./bareLoopMain.ts", import.meta.url),
    })
    yield* bare.ask("open", recogniser)
    // Then the model is loaded, a decoder is ready, and the code is compiled.
    yield* speakers.ask("hear", { target: gateway.target, seconds: 4, count: warmUps })
    return { gateway, speakers, bare }
  })
