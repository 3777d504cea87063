// From a request for a model that is not loaded to its first token, beside a process that opens the same weights with the bare library
// and generates a token. Processes and what they load are included on both sides; a node runs already, as it does for its users.
import { Effect, type Scope } from "effect"
import { atMost, besideFloor, type Part, readingsOf } from "#harness/report/Figure.ts"
import { operatorOf, superadminKey } from "../../operations/Operator.ts"
import { type ChildFailed, startChild } from "../../support/Child.ts"
import { startGateway } from "../../support/Gateway.ts"
import { type RoundsPlan, repeatRounds } from "../../support/Rounds.ts"
import type { BareCommands } from "./bareMain.ts"
import { sizedEntry, sizedModel } from "./Models.ts"
import { promptOnce, type SizedStage } from "./Stage.ts"

const promptTokens = 8

/** Milliseconds in which a model measures what a load left undone, if the machine lets it. A guess. */
const measuringMs = 4_000

const elapsed = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<number, E, R> =>
  Effect.suspend(() => {
    const startedMs = performance.now()
    return Effect.map(effect, () => performance.now() - startedMs)
  })

/** A new process of the library: start, weights, context, first token. */
const bareLoad = ({ serials, threads, weights }: SizedStage) =>
  Effect.gen(function* () {
    const bare = yield* startChild<BareCommands>({
      name: "bare loop",
      entry: new URL("./bareMain.ts", import.meta.url),
    })
    yield* bare.ask("open", { weights, threads, gpu: "off" })
    yield* bare.ask("firstTokens", { prompts: serials.prompts(1, promptTokens), tokens: 1 })
  }).pipe(Effect.scoped, elapsed)

/** A node without a data directory before it, and the first and the second load of the model on it. */
const nodeLoads = ({ client, serials, weights }: SizedStage) =>
  Effect.gen(function* () {
    const entry = sizedEntry(weights)
    const onDemand = { ...entry, runtime: { load: "demand" } }
    const gateway = yield* startGateway({ models: [onDemand] })
    const served = { client, target: gateway.target }
    const token = Effect.suspend(() => promptOnce(served, serials.prompts(1, promptTokens)[0] ?? ""))
    const { firstTokenMs: first } = yield* token
    yield* Effect.sleep(measuringMs)
    const operator = operatorOf(gateway, yield* Effect.promise(() => superadminKey(gateway)))
    yield* Effect.promise(() => operator.unload(sizedModel))
    // What an operator has unloaded, a request does not load.
    const second = yield* elapsed(
      Effect.andThen(
        Effect.promise(() => operator.load(sizedModel)),
        token,
      ),
    )
    return { first, second }
  }).pipe(Effect.scoped)

export const loads = (stage: SizedStage, plan: RoundsPlan): Effect.Effect<Part, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const rounds = yield* repeatRounds(plan, () =>
      Effect.gen(function* () {
        const bare = yield* bareLoad(stage)
        return { bare, ...(yield* nodeLoads(stage)) }
      }),
    )
    const bare = readingsOf(
      "bare library",
      "ms",
      rounds.map((reading) => reading.bare),
    )
    const node = (name: string, part: "first" | "second", most: number) =>
      besideFloor(
        bare,
        readingsOf(
          name,
          "ms",
          rounds.map((reading) => reading[part]),
        ),
        atMost(most),
      )
    const [floor, ...first] = node("first load", "first", 2.5)
    return {
      title: "Load to first token",
      method: `a prompt of ${promptTokens} tokens; the library in a new process, then a new node without measurements whose model loads for the request, and loads again for an operator and a request; alternately`,
      figures: [
        ...(floor === undefined ? [] : [floor]),
        ...first,
        ...node("second load", "second", 1.5).slice(1),
      ],
    }
  })
