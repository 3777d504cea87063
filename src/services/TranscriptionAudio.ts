// An uploaded file as samples in a ring, for one run of a transcription. What an earlier run has transcribed is passed over, a
// decoder process that dies is replaced once, and one that another user's file needs is asked for again. Used by
// TranscriptionRun; knows no model and no money.
import { randomUUID } from "node:crypto"
import { dirname, join } from "node:path"
import { Effect, Exit, Scope } from "effect"
import type { TranscriberAudio } from "#actors/jobs/FileTranscription.ts"
import { type DecodedRing, type DecodeError, Decoder } from "#audio/Decoder.ts"
import { CHUNK_SAMPLES } from "#audio/decoder/DecoderWire.ts"
import { removeSpooled } from "#audio/SpoolFile.ts"
import { RING_SAMPLES, type SampleRing } from "#domain/audio/SampleRing.ts"
import type { Place } from "#domain/queues/WaitingLine.ts"
import { AtCapacity, InvalidRequest } from "#domain/wire/Errors.ts"

/** When a caller may expect a free decoder, or room on the disk. A guess: most files are shorter than what is decoded in this time. */
const busyRetryMs = 5_000

/** What the caller is told. A dead or silent decoder has had its second chance by then: it is the file. */
const toEdgeError =
  (model: string) =>
  (error: DecodeError): AtCapacity | InvalidRequest => {
    if (error._tag === "AudioRejected") return new InvalidRequest({ field: "file", problem: error.detail })
    // A disk that is full has room again some time, and nothing is wrong with the file.
    return error.reason === "Busy" || error.reason === "Spool"
      ? new AtCapacity({ model, retryAfterMs: busyRetryMs })
      : new InvalidRequest({ field: "file", problem: "cannot be decoded" })
  }

const died = (error: DecodeError): boolean => error._tag === "DecoderFailed" && error.reason === "Died"
const preempted = (error: DecodeError): boolean =>
  error._tag === "DecoderFailed" && error.reason === "Preempted"

/** Says whose it is, because another node may be at work in the same folder. */
const ringName = (): string => `${randomUUID()}.${process.pid}.f32`

/** The ring of another node of this machine that is alive. */
export const isAnothersRing = (name: string): boolean => {
  const pid = Number(/\.(\d+)\.f32$/.exec(name)?.[1] ?? Number.NaN)
  if (Number.isNaN(pid) || pid === process.pid) return false
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** The folder of the rings, beside that of the uploads: engines may read it, and no upload. */
export const ringFolder = (uploads: string): string => join(dirname(uploads), "rings")

/** A name for a ring, in a folder that is cleared when a node starts. The file is made when a decoder gets it. */
const ringBeside = (path: string): Effect.Effect<SampleRing, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => ({ path: join(ringFolder(dirname(path)), ringName()), ringSamples: RING_SAMPLES })),
    (ring) => Effect.promise(() => removeSpooled(ring.path)),
  )

export type TranscriptionAudio = TranscriberAudio<AtCapacity | InvalidRequest>

/**
 * Opens a file, which fails here when it is no audio. The decoder is given back at the end of the file, not of the
 * scope: most files end within their first window, and somebody else may be waiting for a decoder.
 * @param skipSamples at 16 kHz, passed over at the start
 * @param place whose file it is, for the queue of the decoders
 */
export const openAudio = Effect.fnUntraced(function* (
  model: string,
  path: string,
  skipSamples: number,
  place: Pick<Place, "urgency" | "user">,
) {
  const decoder = yield* Decoder
  const outer = yield* Effect.scope
  const failed = toEdgeError(model)
  const ring = yield* ringBeside(path)
  let inner: Scope.Closeable | undefined
  /** Samples that lie in the ring or have been released from it. */
  let written = skipSamples
  let until = skipSamples + ring.ringSamples
  let chances = 1

  const close = Effect.suspend(() => (inner === undefined ? Effect.void : Scope.close(inner, Exit.void)))
  /** `again`, where a decoder died under `use` and none has done so before. */
  const orElseOnce = <A>(use: Effect.Effect<A, DecodeError>, again: Effect.Effect<A, DecodeError>) =>
    Effect.catchIf(
      use,
      (error) => died(error) && chances-- > 0,
      () => again,
    )
  let decoded: DecodedRing | undefined
  let continues = false
  /** From what the ring does not hold yet. */
  const reopen = Effect.gen(function* () {
    yield* close
    inner = yield* Scope.fork(outer)
    decoded = yield* Scope.provide(
      decoder.decodeInto(path, { ...ring, from: written, until }, { ...place, continues }),
      inner,
    )
    continues = true
  })
  const next: Effect.Effect<number | undefined, DecodeError> = Effect.gen(function* () {
    const more = decoded === undefined ? undefined : yield* decoded.pull
    if (more !== undefined) written += more
    else {
      decoded = undefined
      yield* close
    }
    return more
  })

  /** The process may be taken away again while the next samples are awaited. */
  const resumed: Effect.Effect<number | undefined, DecodeError> = Effect.catchIf(next, preempted, () =>
    Effect.andThen(reopen, resumed),
  )

  yield* Effect.mapError(orElseOnce(reopen, reopen), failed)
  return {
    next: Effect.mapError(orElseOnce(resumed, Effect.andThen(reopen, resumed)), failed),
    // The decoder writes a chunk as soon as there is room for one sample of it.
    atMostWaiting: ring.ringSamples - CHUNK_SAMPLES,
    span: (from, count) => ({ ...ring, from, count }),
    release: (before) => {
      until = before + ring.ringSamples
      decoded?.allowUntil(until)
    },
  } satisfies TranscriptionAudio
})
