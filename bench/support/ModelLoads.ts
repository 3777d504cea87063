// From a request for a model that is not loaded to its first result, beside a process that opens the same weights with the bare
// library. Processes and what they load are included on both sides; a node runs already, as it does for its users.
import { Effect, type Scope } from "effect"
import { atMost, besideFloor, ofEach, type Part } from "#harness/report/Figure.ts"
import { operatorOf, superadminKey } from "../operations/Operator.ts"
import type { BareOnnxCommands } from "./bareOnnxMain.ts"
import { type ChildFailed, startChild } from "./Child.ts"
import { type Gateway, startGateway } from "./Gateway.ts"
import { type RoundsPlan, repeatRounds } from "./Rounds.ts"

interface ModelLoads {
  readonly title: string
  /** What the first result is. */
  readonly method: string
  readonly entry: Readonly<Record<string, unknown>> & { readonly id: string }
  /** A new process of the library: start, weights, first result. */
  readonly bare: Effect.Effect<unknown, ChildFailed, Scope.Scope>
  /** A request to the node, to its first result. */
  readonly use: (gateway: Gateway) => Effect.Effect<unknown, ChildFailed>
}

/** Milliseconds in which an idle model measures threads and durations, if nothing else computes. A guess: it needs half of it. */
export const measuringMs = 5_000

/** A new process in which ONNX Runtime opens weights alone. */
export const startBareOnnx = startChild<BareOnnxCommands>({
  name: "bare ONNX Runtime",
  entry: new URL("./bareOnnxMain.ts", import.meta.url),
})

const elapsed = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<number, E, R> =>
  Effect.suspend(() => {
    const startedMs = performance.now()
    return Effect.map(effect, () => performance.now() - startedMs)
  })

/** A node without a data directory before it, and the first and the second load of the model on it. */
const nodeLoads = ({ entry, use }: ModelLoads) =>
  Effect.gen(function* () {
    const gateway = yield* startGateway({ models: [{ ...entry, runtime: { load: "demand" } }] })
    const first = yield* elapsed(use(gateway))
    yield* Effect.sleep(measuringMs)
    const operator = operatorOf(gateway, yield* Effect.promise(() => superadminKey(gateway)))
    yield* Effect.promise(() => operator.unload(entry.id))
    // What an operator has unloaded, a request does not load.
    const second = yield* elapsed(
      Effect.andThen(
        Effect.promise(() => operator.load(entry.id)),
        use(gateway),
      ),
    )
    return { first, second }
  }).pipe(Effect.scoped)

export const modelLoads = (
  plan: RoundsPlan,
  loads: ModelLoads,
): Effect.Effect<Part, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const rounds = yield* repeatRounds(plan, () =>
      Effect.gen(function* () {
        const bare = yield* elapsed(Effect.scoped(loads.bare))
        return { bare, ...(yield* nodeLoads(loads)) }
      }),
    )
    const bare = ofEach(rounds, "bare library", "ms", (round) => round.bare)
    const first = ofEach(rounds, "first load", "ms", (round) => round.first)
    const second = ofEach(rounds, "second load", "ms", (round) => round.second)
    return {
      title: loads.title,
      method:
        `${loads.method}; the library in a new process, then a new node without measurements whose model loads for the ` +
        "request, and loads again for an operator and a request; alternately",
      figures: [...besideFloor(bare, first, atMost(2.5)), ...besideFloor(bare, second, atMost(1.5)).slice(1)],
    }
  })
