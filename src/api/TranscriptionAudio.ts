// An uploaded file as samples, for one run of a transcription: what an earlier run has heard is passed over, and a
// decoder process that dies is replaced once. Used by TranscriptionRun; knows no model and no money.
import { Effect, Exit, Scope } from "effect"
import { type Decoded, type DecodeError, Decoder } from "#audio/Decoder.ts"
import { AtCapacity, InvalidRequest } from "#domain/Errors.ts"

/** When a caller may expect a free decoder. A guess: most files are shorter than what is decoded in this time. */
const busyRetryMs = 5_000

/** What the caller is told. A dead or silent decoder has had its second chance by then: it is the file. */
const toEdgeError =
  (model: string) =>
  (error: DecodeError): AtCapacity | InvalidRequest => {
    if (error._tag === "AudioRejected") return new InvalidRequest({ field: "file", problem: error.detail })
    return error.reason === "Busy"
      ? new AtCapacity({ model, retryAfterMs: busyRetryMs })
      : new InvalidRequest({ field: "file", problem: "cannot be decoded" })
  }

const died = (error: DecodeError): boolean => error._tag === "DecoderFailed" && error.reason === "Died"

export interface TranscriptionAudio {
  /** The next samples, 16 kHz mono, or undefined at the end. */
  readonly pull: Effect.Effect<Float32Array | undefined, AtCapacity | InvalidRequest>
}

/**
 * Opens a file, which fails here when it is no audio. The decoder is given back at the end of the file, not of the
 * scope: most files end within their first window, and somebody else may be waiting for a decoder.
 * @param skipSamples at 16 kHz, passed over at the start
 */
export const openAudio = Effect.fnUntraced(function* (model: string, path: string, skipSamples: number) {
  const decoder = yield* Decoder
  const outer = yield* Effect.scope
  let inner: Scope.Closeable | undefined
  /** Samples of the present decoding; those before `wanted` have been delivered or are to be passed over. */
  let position = 0
  let wanted = skipSamples
  let chances = 1

  const close = Effect.suspend(() => (inner === undefined ? Effect.void : Scope.close(inner, Exit.void)))
  /** `again`, where a decoder died under `use` and none has done so before. */
  const orElseOnce = <A>(use: Effect.Effect<A, DecodeError>, again: Effect.Effect<A, DecodeError>) =>
    Effect.catchIf(
      use,
      (error) => died(error) && chances-- > 0,
      () => again,
    )
  const open = Effect.gen(function* () {
    inner = yield* Scope.fork(outer)
    position = 0
    return yield* Scope.provide(decoder.decode(path), inner)
  })
  let decoded: Decoded | undefined
  const reopen = Effect.suspend(() =>
    Effect.map(Effect.andThen(close, open), (fresh) => {
      decoded = fresh
    }),
  )
  const next: Effect.Effect<Float32Array | undefined, DecodeError> = Effect.gen(function* () {
    for (;;) {
      const samples = decoded === undefined ? undefined : yield* decoded.pull
      if (samples === undefined) {
        decoded = undefined
        yield* close
        return undefined
      }
      const start = position
      position += samples.length
      if (position <= wanted) continue
      const fresh = start < wanted ? samples.subarray(wanted - start) : samples
      wanted = position
      return fresh
    }
  })

  yield* Effect.mapError(orElseOnce(reopen, reopen), toEdgeError(model))
  return {
    pull: Effect.mapError(orElseOnce(next, Effect.andThen(reopen, next)), toEdgeError(model)),
  } satisfies TranscriptionAudio
})
