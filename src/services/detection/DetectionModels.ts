// The detection models of the catalog, as sessions use them: the first one that detects speech, and the first that detects the ends of turns.
// A model that is not there, has not loaded, or does not answer in time is no failure of a session: it goes on with the built-in detector.
import { Context, Effect, Layer, type Scope } from "effect"
import type { ModelHandle } from "#actors/model/ModelHandle.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { adapterFacts } from "#engines/AdapterFacts.ts"
import type { Detected, DetectPiece, Detects } from "#engines/protocol/Detection.ts"
import { DetectionCalls } from "./DetectionCalls.ts"

/** One model, for one session. */
export interface DetectionModel {
  /** Whether it is loaded and answers. */
  readonly isReady: () => boolean
  /** Undefined where it has not answered in time, or failed; it is then not ready for a while. */
  readonly detect: (piece: DetectPiece) => Effect.Effect<Detected | undefined>
}

export interface SessionDetection {
  readonly speech: DetectionModel | undefined
  readonly turnEnds: DetectionModel | undefined
}

/** The built-in detector alone. */
const builtInDetection: SessionDetection = { speech: undefined, turnEnds: undefined }

/**
 * An answer is waited for so long, milliseconds. Speech: the session's audio waits meanwhile; a step takes a millisecond, so longer means that
 * the process has crashed, hangs or gets no processor. Ends of turns: the longest silence of `semantic_vad` has passed by then. Guesses. Tests
 * lengthen it.
 */
export const DetectionPatience = Context.Reference<Readonly<Record<Detects, number>>>(
  "edgewise/services/DetectionPatience",
  { defaultValue: () => ({ speech: 500, "turn ends": 2_000 }) },
)

/** A model that did not answer is left alone for so long, milliseconds. A guess: a restart of its process takes about a second. */
const retryAfterMs = 5_000

/** A session waits so long for the model's load, milliseconds. A guess: it takes about a second. */
const mostLoadMs = 10_000

export const DetectionModels = Context.Reference<{
  /** Loads the models that are not loaded, and keeps them loaded until the scope closes. Does not fail. */
  readonly open: Effect.Effect<SessionDetection, never, Scope.Scope>
}>("edgewise/services/DetectionModels", {
  defaultValue: () => ({ open: Effect.succeed(builtInDetection) }),
})

interface Shared {
  readonly calls: DetectionCalls
  /** Until then it is left alone. `performance.now()`. */
  awayUntilMs: number
}

const runOn = (handle: ModelHandle<"detection">) => (pieces: ReadonlyArray<DetectPiece>) =>
  Effect.suspend(() => {
    const found: Array<Detected> = []
    const reader = { take: (detected: Detected) => void found.push(detected) }
    return Effect.as(handle.run({ pieces }, reader, { urgency: "live", continues: true }), found)
  })

export const detectionModels = Layer.effect(
  DetectionModels,
  Effect.gen(function* () {
    const registry = yield* ModelRegistry
    const mostMs = yield* DetectionPatience
    const scope = yield* Effect.scope
    const context = yield* Effect.context<never>()
    const all = new Map<string, Shared>()

    const sharedOf = (handle: ModelHandle<"detection">, detects: Detects): Shared => {
      const { id } = handle.entry
      const known = all.get(id)
      if (known !== undefined) return known
      const shared = { calls: new DetectionCalls(runOn(handle), mostMs[detects]), awayUntilMs: 0 }
      all.set(id, shared)
      // Its calls belong to no session, and go on when that of the first has ended.
      Effect.runForkWith(context)(Effect.forkIn(shared.calls.serve, scope))
      return shared
    }

    const modelOf = (handle: ModelHandle<"detection">, detects: Detects): DetectionModel => {
      const shared = sharedOf(handle, detects)
      return {
        isReady: () => performance.now() >= shared.awayUntilMs && handle.facts() !== undefined,
        detect: (piece) =>
          Effect.map(shared.calls.detect(piece), (detected) => {
            if (detected === undefined) shared.awayUntilMs = performance.now() + retryAfterMs
            return detected
          }),
      }
    }

    const openOne = Effect.fnUntraced(function* (detects: Detects) {
      const entry = registry
        .all()
        .find(({ entry }) => adapterFacts[entry.adapter]?.detects === detects)?.entry
      if (entry === undefined) return undefined
      const handle = yield* registry.get(entry.id, "detection")
      const model = handle.current()
      if (model !== undefined) yield* model.keep
      if (handle.facts() === undefined) yield* Effect.ignore(Effect.timeout(handle.loaded, mostLoadMs))
      return modelOf(handle, detects)
    })

    const open = Effect.map(
      Effect.all(
        [openOne("speech"), openOne("turn ends")].map((one) => Effect.orElseSucceed(one, () => undefined)),
        { concurrency: "unbounded" },
      ),
      ([speech, turnEnds]) => ({ speech, turnEnds }),
    )
    return { open }
  }),
)
