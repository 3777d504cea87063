// Memory that remains after every built-in model was loaded and unloaded a hundred times on one node: resident memory
// of the node, and of each engine just after its load, compared with the second cycle.
import { Effect, type Scope } from "effect"
import { residentBytesOf } from "#actors/device/ResidentMemory.ts"
import { median } from "#harness/figures/Statistics.ts"
import { atMost, type Figure, figure, type Part } from "#harness/report/Figure.ts"
import { digits } from "#harness/report/Format.ts"
import type { ChildFailed } from "../support/Child.ts"
import { startGateway } from "../support/Gateway.ts"
import { builtInModels } from "./Models.ts"
import { operatorOf, superadminKey } from "./Operator.ts"

/** Models with the same weights, engine and options use the same memory, so one of them is enough. */
const distinct = <A extends { readonly adapter: string; readonly files: unknown; readonly options: unknown }>(
  entries: ReadonlyArray<A>,
): ReadonlyArray<A> =>
  [
    ...new Map(
      entries
        .toReversed()
        .map((entry) => [JSON.stringify([entry.adapter, entry.files, entry.options]), entry] as const),
    ).values(),
  ].toReversed()

interface Series {
  readonly engineMb: Array<number>
  readonly nodeMb: Array<number>
  readonly loadMs: Array<number>
  readonly unloadMs: Array<number>
}

/** The last readings divided by the second one; the median of five, because a single reading of a heap varies. */
const shareOfSecond = (values: ReadonlyArray<number>): number =>
  median(values.slice(-5)) / (values[1] ?? Number.NaN)

const figuresOf = (id: string, { engineMb, loadMs, nodeMb, unloadMs }: Series): ReadonlyArray<Figure> => [
  figure(`${id}: its process, last cycles / second`, "x", [shareOfSecond(engineMb)], atMost(1.1)),
  figure(`${id}: the node, last cycles / second`, "x", [shareOfSecond(nodeMb)], atMost(1.1)),
  figure(`${id}: process once loaded`, "MB", engineMb),
  figure(`${id}: load, as the operator waits`, "ms", loadMs),
  figure(`${id}: unload until the memory is back`, "ms", unloadMs),
]

export const loadCycles = (cycles: number): Effect.Effect<Part, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const entries = distinct(yield* Effect.promise(builtInModels))
    const gateway = yield* startGateway({ models: entries })
    const figures = yield* Effect.promise(async () => {
      const operator = operatorOf(gateway, await superadminKey(gateway))
      const nodeMb = () => residentBytesOf(gateway.child.pid) / 1024 ** 2
      const all: Array<Figure> = []
      for (const { id } of entries) {
        const series: Series = { engineMb: [], nodeMb: [], loadMs: [], unloadMs: [] }
        for (let i = 0; i < cycles; i++) {
          const startedMs = performance.now()
          await operator.load(id)
          series.loadMs.push(performance.now() - startedMs)
          const engine = await operator.engine(id)
          series.engineMb.push(engine?.residentMb ?? Number.NaN)
          const loadedMs = performance.now()
          await operator.unload(id)
          series.unloadMs.push(performance.now() - loadedMs)
          if (engine !== undefined && residentBytesOf(engine.pid) > 0)
            throw new Error(`${id}: process ${engine.pid} is still there after its unload`)
          series.nodeMb.push(nodeMb())
        }
        const found = figuresOf(id, series)
        all.push(...found)
        // Printed as progress: the section takes five minutes.
        for (const { median, name, unit } of found) console.error(`${name}: ${digits(median)} ${unit}`)
      }
      return all
    })
    return {
      title: `Load and unload, ${cycles} times each built-in model, one after the other`,
      method:
        "Operator endpoints of one node; resident memory from /proc. Last cycles: the median of the last five. " +
        "After every unload the process must be gone.",
      figures,
    }
  })
