// The adapter of GGUF text models: the descriptor, the step loop of a loaded model, and the later measurement of its threads.
import * as Effect from "effect/Effect"
import * as Semaphore from "effect/Semaphore"
import type { EngineDescriptor, TextEngine } from "../../protocol/Engine.ts"
import { decodeOptions } from "../Options.ts"
import { StepLoop } from "../steps/StepLoop.ts"
import { type Arrivals, generator } from "./Generate.ts"
import { loadModel, type Model } from "./LoadedGguf.ts"

const mebibyte = 1024 * 1024

/**
 * Pauses in milliseconds before the threads are measured again, after a load on a busy machine (e.g. a node that starts
 * several models). It runs only while no request is open, and a request ends it. Guesses.
 */
const measureAgainAfterMs: ReadonlyArray<number> = [2_000, 5_000, 15_000, 60_000, 300_000]

const measureLater = (
  { stepped }: Model,
  loop: StepLoop,
  permits: Semaphore.Semaphore,
  slots: number,
  arrivals: Arrivals,
): Effect.Effect<void> =>
  Effect.gen(function* () {
    for (const waitMs of measureAgainAfterMs) {
      if (!stepped.isUnsure()) return
      yield* Effect.sleep(waitMs)
      const measuring = Effect.promise(() => {
        // The measured steps begin at position 0 of a sequence.
        loop.empty()
        return stepped.measureAgain(() => arrivals.closed || arrivals.waiting > 0)
      })
      // The context must not be closed during a step.
      yield* permits.withPermitsIfAvailable(slots)(Effect.uninterruptible(measuring))
    }
  })

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
    const arrivals = { waiting: 0, closed: false }
    yield* Effect.forkScoped(measureLater(model, loop, permits, options.slots, arrivals))
    // Registered last, so it runs first: a measurement that is running ends with its step.
    yield* Effect.addFinalizer(() =>
      Effect.sync(() => {
        arrivals.closed = true
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
    } satisfies TextEngine
  }),
}
