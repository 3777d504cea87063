// Memory after a thousand requests with pictures, each with another one, against that after the first two hundred.
import { Effect } from "effect"
import { atMost, figure, type Part } from "#harness/report/Figure.ts"
import { operatorOf, superadminKey } from "../operations/Operator.ts"
import type { ChildFailed } from "../support/Child.ts"
import { ask } from "./FirstToken.ts"
import { pictureQuestion, pictureUrl } from "./Models.ts"
import type { Stage } from "./Stage.ts"

const model = "toy-idefics3"

/** Requests at a time. */
const atOnce = 4

export const memoryAfter = (stage: Stage, requests: number): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const { gateway } = stage
    const operator = operatorOf(gateway, yield* Effect.promise(() => superadminKey(gateway)))
    const reading = Effect.gen(function* () {
      const engine = yield* Effect.promise(() => operator.engine(model))
      const node = yield* gateway.child.ask("memory")
      const mb = (bytes: number) => bytes / 1024 ** 2
      return { engineMb: engine?.residentMb ?? 0, nodeMb: mb(node.residentBytes), heapMb: mb(node.heapBytes) }
    })
    const send = (from: number, to: number) =>
      Effect.forEach(
        Array.from({ length: to - from }, (_, at) => from + at),
        (seed) => ask(stage, pictureQuestion(model, pictureUrl(seed, 120, 90), `what is it ${seed}`)),
        { concurrency: atOnce, discard: true },
      )
    const early = Math.ceil(requests / 5)
    yield* send(0, early)
    const before = yield* reading
    yield* send(early, requests)
    const after = yield* reading
    const goal = atMost(1.1)
    return {
      title: `Memory after ${requests} requests with pictures`,
      method: `a new picture in each, ${atOnce} at a time, toy weights, rows of at most 1 MB kept; against ${early} requests; the node's after a garbage collection`,
      figures: [
        figure(`engine after ${early}`, "MB", [before.engineMb]),
        figure(`engine after ${requests}`, "MB", [after.engineMb]),
        figure("  last over first", "x", [after.engineMb / before.engineMb], goal),
        figure(`node after ${early}`, "MB", [before.nodeMb]),
        figure(`node after ${requests}`, "MB", [after.nodeMb]),
        figure("  last over first", "x", [after.nodeMb / before.nodeMb], goal),
        figure("node's heap, last over first", "x", [after.heapMb / before.heapMb], goal),
      ],
    }
  })
