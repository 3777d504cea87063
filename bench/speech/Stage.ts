// The processes of the speech suite, started once: a node, the players and the engine without a gateway.
import { Effect, type Scope } from "effect"
import { type Child, ChildFailed, startChild } from "../support/Child.ts"
import { type Gateway, startGateway } from "../support/Gateway.ts"
import type { BareEngineCommands } from "./bareEngineMain.ts"
import { models, type StreamFormat, scripted, sentence, spoken } from "./Models.ts"
import type { Heard, PlayerCommands } from "./playerMain.ts"

export interface Stage {
  readonly gateway: Gateway
  readonly players: Child<PlayerCommands>
  readonly bare: Child<BareEngineCommands>
}

export const startStage = (profileDir?: string): Effect.Effect<Stage, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const gateway = yield* startGateway({ models, profileDir })
    const players = yield* startChild<PlayerCommands>({
      name: "players",
      entry: new URL("./playerMain.ts", import.meta.url),
    })
    const bare = yield* startChild<BareEngineCommands>({
      name: "bare engine",
      entry: new URL("./bareEngineMain.ts", import.meta.url),
    })
    const stage: Stage = { gateway, players, bare }
    // Several times: then the models are loaded and the code is compiled.
    yield* bare.ask("inTurn", { text: sentence, count: 10 })
    const short = { pieces: 1, samples: 2_400, pieceMs: 0 }
    for (let time = 0; time < 10; time++) {
      for (const format of ["pcm", "opus"] as const) {
        yield* hearAll(stage, format, [spoken(sentence, format)])
        yield* hearAll(stage, format, [scripted(short, { stream: true, response_format: format })])
      }
    }
    return stage
  })

/** Streams that begin together. Fails unless all of them are served to their end. */
export const hearAll = (
  { gateway, players }: Stage,
  format: StreamFormat,
  bodies: ReadonlyArray<unknown>,
): Effect.Effect<ReadonlyArray<Heard>, ChildFailed> =>
  Effect.gen(function* () {
    const { target } = gateway
    const played = yield* players.ask(
      "hear",
      bodies.map((body) => ({ target, format, body })),
    )
    const bad = played.find(({ status, whole }) => status !== 200 || !whole)
    if (bad === undefined) return played
    return yield* new ChildFailed({ child: "edgewise serve", detail: `speech answered ${bad.status}` })
  })
