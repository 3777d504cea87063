// How synthesised speech is sent: written while it is made (every stream, and batch PCM), or as one body (batch WAV and
// MP3, whose headers hold their length). Begins when the engine has accepted the text. Whatever can fail before the
// first byte has failed before an answer begins, and is an ordinary error.
import { Effect, Latch } from "effect"
import { HttpServerResponse } from "effect/http"
import { CodecPool } from "#audio/codecs/CodecPool.ts"
import type { Encoder } from "#audio/codecs/Encoder.ts"
import { type AudioFormat, speechRateHz } from "#domain/audio/Audio.ts"
import { AtCapacity, SynthesisFailed } from "#domain/wire/Errors.ts"
import { contentTypes, isStreamed } from "#domain/wire/Speech.ts"
import { joined } from "#http/JoinedBytes.ts"
import { sinkResponse } from "#http/SinkBody.ts"
import type { Synthesis } from "#services/Synthesis.ts"
import { ByteFeeder } from "./ByteFeeder.ts"
import { SpeechFrames } from "./SpeechFrames.ts"

/**
 * Bytes of a batch reply that may wait for its reader before the engine pauses: nearly six minutes of PCM. A batch reply
 * is computed without regard to its reader, so that a slow one does not occupy a slot of the model. Only a very long reply
 * with a slow reader exceeds this. A guess, as large as the longest answer that `Idempotency-Key` keeps.
 */
const batchAheadBytes = 16 * 1024 * 1024

const streamHeaders = {
  "x-service-stream": "1",
  "x-service-sample-rate": String(speechRateHz),
  // Makes nginx pass the stream on as it arrives, also where `proxy_buffering` is on.
  "x-accel-buffering": "no",
}

/** Opens an encoder in the request's scope; closing that without `finish` leaves a stream without its end mark. */
const openEncoder = Effect.fnUntraced(function* (
  model: string,
  format: AudioFormat,
  onBytes: (bytes: Uint8Array, samples: number) => void,
) {
  const codecs = yield* CodecPool
  return yield* codecs
    .open({ format, onBytes })
    .pipe(
      Effect.mapError(({ reason }) =>
        reason === "Busy"
          ? new AtCapacity({ model, retryAfterMs: 1_000 })
          : new SynthesisFailed({ model, detail: reason }),
      ),
    )
})

/** Waits for the encoder while its queue is full. */
const encoderGate = Effect.fnUntraced(function* (encoder: Encoder, hold: (busy: boolean) => void) {
  const full = Latch.makeUnsafe(false)
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.gen(function* () {
        yield* full.await
        full.closeUnsafe()
        yield* encoder.ready
        hold(false)
      }),
    ).pipe(Effect.ignore),
  )
  return () => {
    hold(true)
    full.openUnsafe()
  }
})

interface WrittenTerms {
  readonly aheadBytes: number
  readonly headers: Record<string, string>
  /** Makes events of the audio; undefined: its bytes are the reply. */
  readonly frames?: SpeechFrames
}

/** A reply that is written while it is made. */
const writtenReply = Effect.fnUntraced(function* (
  model: string,
  synthesis: Synthesis,
  format: AudioFormat,
  { aheadBytes, frames, headers }: WrittenTerms,
) {
  const { flow } = synthesis
  // Two things can be full, the socket and the encoder; the engine goes on when neither is.
  const full = { sink: false, encoder: false }
  const hold = (part: keyof typeof full) => (now: boolean) => {
    const before = full.sink || full.encoder
    full[part] = now
    const after = full.sink || full.encoder
    if (after !== before) after ? flow.pause() : flow.resume()
  }
  /** The encoder's output before the reply has begun: the head of a container, or more. */
  const early: Array<readonly [bytes: Uint8Array, samples: number]> = []
  let onBytes = (bytes: Uint8Array, samples: number): void => void early.push([bytes, samples])
  // Opened while the engine computes the first piece: a codec has to be set up as well.
  const encoder = yield* openEncoder(model, format, (bytes, samples) => onBytes(bytes, samples))
  const encoderFull = yield* encoderGate(encoder, hold("encoder"))
  synthesis.read({
    take: ({ samples, words }) => {
      frames?.heard(words)
      if (!encoder.push(samples)) encoderFull()
    },
  })
  yield* synthesis.audible
  return sinkResponse(
    (sink) =>
      Effect.gen(function* () {
        const events = { busy: hold("sink"), delivered: synthesis.delivered }
        const feeder = new ByteFeeder(sink, events, aheadBytes)
        const feed = (bytes: Uint8Array, samples: number): void =>
          feeder.push(frames === undefined ? bytes : frames.audio(bytes), samples)
        for (const [bytes, samples] of early.splice(0)) feed(bytes, samples)
        onBytes = feed
        const samples = yield* Effect.raceFirst(synthesis.end, encoder.failed)
        yield* Effect.raceFirst(encoder.finish, encoder.failed)
        if (frames !== undefined) feeder.push(frames.done(samples), 0)
        yield* feeder.flushed
      }),
    { contentType: frames === undefined ? contentTypes[format] : eventsType, headers },
  )
})

/** Audio of one event where all of it has been made. A guess: a second of MP3 has 16 KB. */
const eventBytes = 16 * 1024

const eventsType = "text/event-stream; charset=utf-8"

/**
 * The reply to `stream_format: "sse"`. `wordsOf`: the text whose words are told; undefined: none are. A format whose head holds its
 * length is sent when all of it has been made.
 */
export const eventReply = (
  model: string,
  synthesis: Synthesis,
  format: AudioFormat,
  wordsOf: string | undefined,
) =>
  Effect.gen(function* () {
    const frames = new SpeechFrames(wordsOf)
    if (isStreamed(format)) {
      return yield* writtenReply(model, synthesis, format, { aheadBytes: 0, headers: streamHeaders, frames })
    }
    const { body, samples } = yield* wholeBody(model, synthesis, format, frames)
    return sinkResponse(
      (sink) =>
        Effect.gen(function* () {
          const feeder = new ByteFeeder(sink, { busy: () => {}, delivered: () => {} })
          for (let at = 0; at < body.length; at += eventBytes) {
            feeder.push(frames.audio(body.subarray(at, at + eventBytes)), 0)
            yield* feeder.flushed
          }
          feeder.push(frames.done(samples), 0)
          yield* feeder.flushed
        }),
      { contentType: eventsType, headers: streamHeaders },
    )
  })

/** The reply to `stream: true`. */
export const streamReply = (model: string, synthesis: Synthesis, format: AudioFormat) =>
  writtenReply(model, synthesis, format, { aheadBytes: 0, headers: streamHeaders })

/** All of a reply, once it has been made; it is charged then. */
const wholeBody = Effect.fnUntraced(function* (
  model: string,
  synthesis: Synthesis,
  format: AudioFormat,
  frames?: SpeechFrames,
) {
  const parts: Array<Uint8Array> = []
  const encoder = yield* openEncoder(model, format, (bytes) => void parts.push(bytes))
  const full = yield* encoderGate(encoder, (busy) =>
    busy ? synthesis.flow.pause() : synthesis.flow.resume(),
  )
  synthesis.read({
    take: ({ samples, words }) => {
      frames?.heard(words)
      if (!encoder.push(samples)) full()
    },
  })
  const encoded = Effect.catchTag(encoder.failed, "CodecFailed", ({ reason }) =>
    Effect.fail(new SynthesisFailed({ model, detail: reason })),
  )
  const finish = Effect.catchTag(encoder.finish, "CodecFailed", ({ reason }) =>
    Effect.fail(new SynthesisFailed({ model, detail: reason })),
  )
  const made = Effect.gen(function* () {
    yield* synthesis.audible
    const samples = yield* Effect.raceFirst(synthesis.end, encoded)
    yield* finish
    return samples
  })
  // A client that disconnects before its reply is complete pays for what was made until then.
  const samples = yield* Effect.onInterrupt(made, () =>
    Effect.sync(() => synthesis.delivered(synthesis.made())),
  )
  const body = yield* joined(parts)
  synthesis.delivered(samples)
  return { body, samples }
})

/** A reply that is sent when all of it has been made. */
const wholeReply = (model: string, synthesis: Synthesis, format: AudioFormat) =>
  Effect.map(wholeBody(model, synthesis, format), ({ body }) =>
    HttpServerResponse.uint8Array(body, { contentType: contentTypes[format] }),
  )

/** The reply without `stream`. PCM has no header and no end, so it can leave while it is made. */
export const batchReply = (model: string, synthesis: Synthesis, format: AudioFormat) =>
  format === "pcm"
    ? writtenReply(model, synthesis, format, { aheadBytes: batchAheadBytes, headers: {} })
    : wholeReply(model, synthesis, format)
