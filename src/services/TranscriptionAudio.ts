// An uploaded file as samples in a ring, for one run of a transcription. What an earlier run has transcribed is
// skipped; a decoder process that crashes is replaced once; one that was given to another user's file is requested
// again. Knows no model and no money.
import { randomUUID } from "node:crypto"
import { dirname, join } from "node:path"
import { Effect, Exit, Scope } from "effect"
import type { TranscriberAudio } from "#actors/jobs/FileTranscription.ts"
import { type DecodedRing, type DecodeError, Decoder } from "#audio/Decoder.ts"
import { chunkSamples } from "#audio/decoder/DecoderWire.ts"
import { removeSpooled } from "#audio/SpoolFile.ts"
import { ringCapacity, type SampleRing } from "#domain/audio/SampleRing.ts"
import type { Place } from "#domain/queues/FairQueue.ts"
import { AtCapacity, InvalidRequest, NotInstalled } from "#domain/wire/Errors.ts"

/** Retry-After for a free decoder or free disk space. A guess: most files are shorter than what is decoded in this time. */
const busyRetryMs = 5_000

export type AudioError = AtCapacity | InvalidRequest | NotInstalled

export const noDecoder = (model: string) => new NotInstalled({ model, part: "an audio decoder" })

/** The text for the caller. A crashed or hung decoder has been replaced once by then, so the file is the cause. */
const toEdgeError =
  (model: string) =>
  (error: DecodeError): AudioError => {
    if (error._tag === "AudioRejected") return new InvalidRequest({ field: "file", problem: error.detail })
    if (error.reason === "Absent") return noDecoder(model)
    // A full disk is temporary, and the file is not at fault.
    return error.reason === "Busy" || error.reason === "Spool"
      ? new AtCapacity({ model, retryAfterMs: busyRetryMs })
      : new InvalidRequest({ field: "file", problem: "cannot be decoded" })
  }

/** The decoder crashed. */
export const died = (error: DecodeError): boolean => error._tag === "DecoderFailed" && error.reason === "Died"
const preempted = (error: DecodeError): boolean =>
  error._tag === "DecoderFailed" && error.reason === "Preempted"

/** Holds the id of the process, because another node may use the same folder. */
const ringName = (): string => `${randomUUID()}.${process.pid}.f32`

/** True for the ring or the pixels of another live node on this machine. */
export const isAnothersRing = (name: string): boolean => {
  const pid = Number(/\.(\d+)\.(?:f32|rgb)$/.exec(name)?.[1] ?? Number.NaN)
  if (Number.isNaN(pid) || pid === process.pid) return false
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}

/** The folder of the rings, beside that of the uploads: engines may read rings, but no upload. */
export const ringFolder = (uploads: string): string => join(dirname(uploads), "rings")

/** A name for a ring, in a folder that is cleared when a node starts. The file is made when a decoder gets it. */
const ringBeside = (path: string): Effect.Effect<SampleRing, never, Scope.Scope> =>
  Effect.acquireRelease(
    Effect.sync(() => ({ path: join(ringFolder(dirname(path)), ringName()), ringSamples: ringCapacity })),
    (ring) => Effect.promise(() => removeSpooled(ring.path)),
  )

type TranscriptionAudio = TranscriberAudio<AudioError>

/**
 * Opens a file; fails here if it is not audio. The decoder is released at the end of the file, not of the
 * scope: most files end within their first window, and other files may wait for a decoder.
 * @param skipSamples at 16 kHz, skipped at the start
 * @param place the owner of the file, for the queue of the decoders
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
  /** Samples that are in the ring or were released from it. */
  let written = skipSamples
  let until = skipSamples + ring.ringSamples
  let chances = 1

  const close = Effect.suspend(() => (inner === undefined ? Effect.void : Scope.close(inner, Exit.void)))
  /** Runs `again` if a decoder crashed under `use` and none has crashed before. */
  const orElseOnce = <A>(use: Effect.Effect<A, DecodeError>, again: Effect.Effect<A, DecodeError>) =>
    Effect.catchIf(
      use,
      (error) => died(error) && chances-- > 0,
      () => again,
    )
  let decoded: DecodedRing | undefined
  let continues = false
  /** Decodes again from the first sample that the ring has not received. */
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

  /** While the next samples are awaited, the process may be given to another file again. */
  const resumed: Effect.Effect<number | undefined, DecodeError> = Effect.catchIf(next, preempted, () =>
    Effect.andThen(reopen, resumed),
  )

  yield* Effect.mapError(orElseOnce(reopen, reopen), failed)
  return {
    next: Effect.mapError(orElseOnce(resumed, Effect.andThen(reopen, resumed)), failed),
    // The decoder writes a chunk as soon as one sample of it fits.
    atMostWaiting: ring.ringSamples - chunkSamples,
    span: (from, count) => ({ ...ring, from, count }),
    release: (before) => {
      until = before + ring.ringSamples
      decoded?.allowUntil(until)
    },
  } satisfies TranscriptionAudio
})
