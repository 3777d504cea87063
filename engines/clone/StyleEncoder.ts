// The style encoder graph: reference audio in, one style row out. Called once for each cloned request.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { callFailed, type EngineError, loadFailed } from "../protocol/Engine.ts"
import type { OnnxOptions } from "../shared/onnx/OnnxOptions.ts"
import * as OnnxSession from "../shared/onnx/OnnxSession.ts"
import * as Tensors from "../shared/onnx/Tensors.ts"
import { styleSize } from "../shared/speech/VoiceStyles.ts"

interface StyleEncoder {
  /** `audio` f32 [1, samples] at the encoder's rate → `style` f32 [256]. */
  readonly style: (audio: Float32Array) => Effect.Effect<Float32Array, EngineError>
}

export const open = (
  path: string,
  options: OnnxOptions,
): Effect.Effect<StyleEncoder, EngineError, Scope.Scope> =>
  Effect.gen(function* () {
    const session = yield* OnnxSession.open(path, options)
    const audio = yield* OnnxSession.inputNamed(session, ["audio", "audio_values", "waveform"])
    const style = yield* OnnxSession.outputNamed(session, ["style", "ref_s"])
    if (Tensors.numeric(audio.type, new Float32Array(1), [1, 1]) === undefined) {
      return yield* loadFailed("", `${session.file}: input ${audio.name} is ${audio.type}`)
    }
    return {
      style: (samples) =>
        Effect.gen(function* () {
          const feed = Tensors.numeric(audio.type, samples, [1, samples.length])!
          const fetched = yield* session.run({ [audio.name]: feed }, [style.name])
          const row = Tensors.toFloat32(fetched[style.name]!)
          if (row.length !== styleSize) {
            return yield* callFailed(
              `${session.file}: a style of ${row.length} values, expected ${styleSize}`,
            )
          }
          // One NaN here would turn the whole reply into NaN.
          if (!row.every(Number.isFinite)) return yield* callFailed(`${session.file}: returned NaN`)
          return row
        }),
    }
  })
