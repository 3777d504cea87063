// The adapter of GGUF text models: the descriptor, the step loop of a loaded model, and what is left for moments without requests.
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { CallCosts } from "#domain/threads/CallCosts.ts"
import type { EngineDescriptor, TextEngine } from "../../protocol/Engine.ts"
import { decodeOptions } from "../Options.ts"
import { StepLoop } from "../steps/StepLoop.ts"
import { isEndedFor, measuredSequences } from "../steps/StepThreads.ts"
import { type Arrivals, generator } from "./Generate.ts"
import { loadModel, type Model } from "./LoadedGguf.ts"

const mebibyte = 1024 * 1024

/**
 * Pauses in milliseconds before what a load leaves undone is done: threads and durations of calls, unless they were kept, and the tree
 * of the vocabulary. It is done only while no request is open, and a request ends it. The first pause lets a request begin that
 * has waited for the load; the others are for busy machines (e.g. a node that starts several models). Guesses.
 */
const idlePausesMs: ReadonlyArray<number> = [250, 2_000, 5_000, 15_000, 60_000, 300_000]

interface Idle {
  readonly model: Model
  readonly loop: StepLoop
  readonly permits: Semaphore.Semaphore
  readonly slots: number
  readonly arrivals: Arrivals
  /** Durations were not kept from an earlier load. */
  readonly measures: boolean
  readonly onCosts: (costs: CallCosts) => void
}

/** Measures the durations of calls; false if a request came. */
const learnCosts = async (
  { model, onCosts }: Idle,
  sequences: ReadonlyArray<number>,
  isWanted: () => boolean,
): Promise<boolean> => {
  try {
    const costs = await model.measureCosts(sequences, isWanted)
    model.costs.prompt.take(costs.prompt)
    model.costs.replies.take(costs.replies)
    onCosts(costs)
    return true
  } catch (cause) {
    if (isEndedFor(cause, isWanted)) return false
    throw cause
  }
}

const whenIdle = (idle: Idle): Effect.Effect<void> =>
  Effect.gen(function* () {
    const { arrivals, loop, model, permits, slots } = idle
    const { native } = model.stepped
    const { tree } = model.constraints
    const isWanted = () => arrivals.closed || arrivals.waiting > 0
    let measures = idle.measures
    const measure = async (isLast: boolean) => {
      // What earlier requests left is used by later ones, so it is given up only if there is no other chance.
      if (isLast) loop.empty()
      const sequences = loop.unused()
      if (sequences.length < Math.min(slots, measuredSequences)) return
      arrivals.arrived = native.interrupt
      if (model.stepped.isUnsure()) await model.stepped.measure(sequences, isWanted)
      // With threads that are not known yet they would be those of another number of threads.
      if (measures && !model.stepped.isUnsure()) measures = !(await learnCosts(idle, sequences, isWanted))
      arrivals.arrived = nothing
    }
    const work = async (isLast: boolean) => {
      if (measures || model.stepped.isUnsure()) await measure(isLast)
      await tree.prepare(isWanted)
    }
    for (const pauseMs of idlePausesMs) {
      if (!measures && !model.stepped.isUnsure() && tree.isMade) return
      yield* Effect.sleep(pauseMs)
      // The context must not be closed during a step.
      const working = Effect.promise(() => work(pauseMs === idlePausesMs.at(-1)))
      yield* permits.withPermitsIfAvailable(slots)(Effect.uninterruptible(working))
    }
  })

const nothing = (): void => {}

export const llamaGguf: EngineDescriptor<"text"> = {
  adapter: "llama-gguf",
  kind: "text",
  acquire: Effect.fnUntraced(function* (spec) {
    const options = yield* decodeOptions(spec.options)
    const model = yield* loadModel(spec, options)
    const loop = yield* Effect.acquireRelease(
      Effect.sync(
        () =>
          new StepLoop({
            native: model.stepped.native,
            slots: options.slots,
            needsCheckpoints: model.needsCheckpoints,
            checkpointBytes: options.checkpointMegabytes * mebibyte,
            costs: model.costs,
            promptShare: options.promptShare,
          }),
      ),
      (opened) => Effect.promise(() => opened.close()),
    )
    yield* Effect.addFinalizer(() => Effect.sync(() => model.constraints.close()))
    const permits = yield* Semaphore.make(options.slots)
    const arrivals: Arrivals = { waiting: 0, closed: false, arrived: nothing }
    let onCosts: (costs: CallCosts) => void = nothing
    yield* Effect.forkScoped(
      whenIdle({
        model,
        loop,
        permits,
        slots: options.slots,
        arrivals,
        measures: spec.costs === undefined,
        onCosts: (costs) => onCosts(costs),
      }),
    )
    // Registered last, so it runs first: a measurement that is running ends with its step.
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        arrivals.closed = true
        arrivals.arrived()
      }),
    )
    const { contextTokens, pictures, summary } = model
    const taken = pictures && {
      pictures: { maxPixels: pictures.reader.maxPixels, summary: pictures.reader.summary },
    }
    return {
      kind: "text",
      facts: { contextTokens, slots: options.slots, summary, prepares: true, ...taken },
      generate: generator({ model, loop, slots: options.slots, permits, arrivals }),
      prepare: (terms, owner) => model.constraints.prepare(terms, owner),
      lean: (on) => {
        loop.lean(on)
        pictures?.rows.lean(on)
        if (on) model.constraints.clear()
      },
      threads: model.stepped.threads,
      costs: {
        onMeasured: (listener) => {
          onCosts = listener
        },
      },
    } satisfies TextEngine
  }),
}
