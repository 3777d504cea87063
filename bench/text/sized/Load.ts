// A load of a text model, to its first token.
import { Effect, type Scope } from "effect"
import type { Part } from "#harness/report/Figure.ts"
import { type ChildFailed, startChild } from "../../support/Child.ts"
import { modelLoads } from "../../support/ModelLoads.ts"
import type { RoundsPlan } from "../../support/Rounds.ts"
import type { BareCommands } from "./bareMain.ts"
import { sizedEntry } from "./Models.ts"
import { promptOnce, type SizedStage } from "./Stage.ts"

const promptTokens = 8

export const loads = (
  { client, serials, threads, weights }: SizedStage,
  plan: RoundsPlan,
): Effect.Effect<Part, ChildFailed, Scope.Scope> =>
  modelLoads(plan, {
    title: "Load to first token",
    method: `a prompt of ${promptTokens} tokens`,
    entry: sizedEntry(weights),
    bare: Effect.gen(function* () {
      const bare = yield* startChild<BareCommands>({
        name: "bare loop",
        entry: new URL("./bareMain.ts", import.meta.url),
      })
      yield* bare.ask("open", { weights, threads, gpu: "off" })
      yield* bare.ask("firstTokens", { prompts: serials.prompts(1, promptTokens), tokens: 1 })
    }),
    use: ({ target }) =>
      Effect.suspend(() => promptOnce({ client, target }, serials.prompts(1, promptTokens)[0] ?? "")),
  })
