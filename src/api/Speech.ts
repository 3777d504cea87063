// POST /v1/audio/speech and GET /v1/audio/voices: request, response, handlers.
import { Deferred, Effect, Latch } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { ModelRegistry } from "#actors/ModelRegistry.ts"
import { CodecPool } from "#audio/CodecPool.ts"
import type { Encoder } from "#audio/Encoder.ts"
import { type AudioFormat, SPEECH_RATE_HZ } from "#domain/Audio.ts"
import { InputTooLong, InvalidRequest, ModelNotLoaded, SynthesisFailed } from "#domain/Errors.ts"
import type { ModelEntry } from "#domain/Model.ts"
import { contentTypes, formatOf, msPerCharacterAtMost, SpeechRequest } from "#domain/Speech.ts"
import { codePointCount, speechTextWithin } from "#domain/SpeechText.ts"
import { audioUsage } from "#domain/Usage.ts"
import type { PcmChunk, SynthesizeEnd, SynthesizeRequest, SynthesizeStarted } from "#engines/Engine.ts"
import { Caller } from "./Authentication.ts"
import { ByteFeeder } from "./ByteFeeder.ts"
import { readJson } from "./JsonBody.ts"
import { beginRun, type ModelRun, type ModelRunError } from "./ModelRun.ts"
import { sinkResponse } from "./SinkBody.ts"
import { clonedVoice } from "./Voice.ts"

const readRequest = readJson(SpeechRequest)

/** A deployed model that speaks. */
const speechModel = (id: string): Effect.Effect<ModelEntry, InvalidRequest | ModelNotLoaded, ModelRegistry> =>
  Effect.gen(function* () {
    const view = (yield* ModelRegistry).find(id)
    if (view === undefined) return yield* new ModelNotLoaded({ model: id })
    if (view.entry.kind !== "speech") {
      return yield* new InvalidRequest({ field: "model", problem: `${id} does not speak` })
    }
    return view.entry
  })

/** Rules that join fields, in the order of the specification. */
const checked = (request: SpeechRequest, entry: ModelEntry) =>
  Effect.gen(function* () {
    const stream = request.stream === true
    const speed = request.speed ?? 1
    const asked = formatOf(request.response_format ?? "pcm", stream)
    if ("problem" in asked) {
      return yield* new InvalidRequest({ field: "response_format", problem: asked.problem })
    }
    const speech = entry.speech ?? { maxCharacters: 4096, cloning: false, languages: ["en"] }
    if (speech.cloning && stream && speed !== 1) {
      return yield* new InvalidRequest({ field: "speed", problem: `must be 1.0 when ${entry.id} streams` })
    }
    const language = speech.cloning ? (request.language ?? "en") : "en"
    if (!speech.languages.includes(language)) {
      return yield* new InvalidRequest({
        field: "language",
        problem: `must be one of ${speech.languages.join(", ")}`,
      })
    }
    const text = speechTextWithin(request.input, speech.maxCharacters)
    if (text === undefined) {
      return yield* new InputTooLong({ model: entry.id, maxCharacters: speech.maxCharacters })
    }
    if (text === "") return yield* new InvalidRequest({ field: "input", problem: "has nothing to speak" })
    return { cloning: speech.cloning, format: asked.format, language, speed, stream, text }
  })

/** An engine that cannot make a voice or a sound of the text is an upstream failure, except for a bad clip. */
const speechError =
  (model: string, cloning: boolean) =>
  (error: ModelRunError): ModelRunError | SynthesisFailed => {
    if (error._tag === "EngineFailed") return new SynthesisFailed({ model, detail: error.reason })
    if (error._tag !== "InvalidRequest" || (cloning && error.field === "voice")) return error
    return new SynthesisFailed({ model, detail: error.field })
  }

interface Synthesis {
  readonly run: ModelRun<SynthesizeStarted, SynthesizeEnd>
  /** Sends chunks, the ones that came before included, to `reader` from now on. Called once. */
  readonly read: (reader: (samples: Int16Array) => void) => void
  /** Takes note of samples that have reached the client: what will be charged. */
  readonly delivered: (samples: number) => void
}

/** Starts a synthesis and waits for its first audio, so that nothing is answered before there is something to play. */
const beginSynthesis = Effect.fnUntraced(function* (
  entry: ModelEntry,
  request: SynthesizeRequest,
  cloning: boolean,
) {
  const early: Array<Int16Array> = []
  const first = Deferred.makeUnsafe<void>()
  let deliveredSamples = 0
  let reader = (samples: Int16Array): void => void early.push(samples)
  const atMostMs = (codePointCount(request.text) * msPerCharacterAtMost) / request.speed
  const run = yield* beginRun<SynthesizeStarted, PcmChunk, SynthesizeEnd>({
    principal: yield* Caller,
    entry,
    request,
    atMost: audioUsage("speech", Math.ceil(atMostMs), 1000),
    used: () => (deliveredSamples === 0 ? undefined : audioUsage("speech", deliveredSamples, SPEECH_RATE_HZ)),
    onStarted: () => {},
    onUnit: ({ samples }) => {
      reader(samples)
      Deferred.doneUnsafe(first, Effect.void)
    },
    onEnd: () => {},
  }).pipe(Effect.mapError(speechError(entry.id, cloning)))
  yield* Effect.raceFirst(Deferred.await(first), Effect.asVoid(run.end)).pipe(
    Effect.mapError(speechError(entry.id, cloning)),
  )
  if (early.length === 0) return yield* new SynthesisFailed({ model: entry.id, detail: "no audio" })
  return {
    run,
    read: (next) => {
      for (const samples of early) next(samples)
      reader = next
    },
    delivered: (samples) => {
      deliveredSamples += samples
    },
  } satisfies Synthesis
})

/** Waits for the encoder whenever it says that it has enough; a scoped helper of one stream. */
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

const streamHeaders = { "x-service-stream": "1", "x-service-sample-rate": String(SPEECH_RATE_HZ) }

const streamReply = (synthesis: Synthesis, format: AudioFormat, codecs: CodecPool["Service"]) =>
  sinkResponse(
    (sink) =>
      Effect.gen(function* () {
        const { flow } = synthesis.run
        // Two things can be full, the socket and the encoder; the engine goes on when neither is.
        const busy = { sink: false, encoder: false }
        const hold = (part: keyof typeof busy) => (now: boolean) => {
          const before = busy.sink || busy.encoder
          busy[part] = now
          const after = busy.sink || busy.encoder
          if (after !== before) after ? flow.pause() : flow.resume()
        }
        const feeder = new ByteFeeder(sink, hold("sink"))
        const encoder = yield* codecs.open({ format, onBytes: (bytes) => feeder.push(bytes) })
        const full = yield* encoderGate(encoder, hold("encoder"))
        synthesis.read((samples) => {
          synthesis.delivered(samples.length)
          if (!encoder.push(samples)) full()
        })
        yield* Effect.raceFirst(synthesis.run.end, encoder.failed)
        yield* Effect.raceFirst(encoder.finish, encoder.failed)
        yield* feeder.flushed
      }).pipe(Effect.scoped),
    { contentType: contentTypes[format], headers: streamHeaders },
  )

const batchReply = Effect.fnUntraced(function* (
  synthesis: Synthesis,
  format: AudioFormat,
  codecs: CodecPool["Service"],
  failed: (error: ModelRunError) => ModelRunError | SynthesisFailed,
) {
  const parts: Array<Uint8Array> = []
  const encoder = yield* codecs.open({ format, onBytes: (bytes) => void parts.push(bytes) })
  const full = yield* encoderGate(encoder, (busy) =>
    busy ? synthesis.run.flow.pause() : synthesis.run.flow.resume(),
  )
  synthesis.read((samples) => {
    if (!encoder.push(samples)) full()
  })
  const { samples } = yield* Effect.raceFirst(Effect.mapError(synthesis.run.end, failed), encoder.failed)
  yield* encoder.finish
  synthesis.delivered(samples)
  return HttpServerResponse.uint8Array(Buffer.concat(parts), { contentType: contentTypes[format] })
})

export const speech = Effect.fn("Speech.create")(function* (
  httpRequest: HttpServerRequest.HttpServerRequest,
) {
  const body = yield* readRequest(httpRequest)
  const entry = yield* speechModel(body.model)
  const { cloning, format, language, speed, stream, text } = yield* checked(body, entry)
  const voice = cloning ? yield* clonedVoice(body) : { preset: body.voice }
  const codecs = yield* CodecPool
  const failed = speechError(entry.id, cloning)
  const synthesis = yield* beginSynthesis(
    entry,
    { text, voice, language, speed, priority: stream ? "stream" : "batch" },
    cloning,
  )
  if (stream) return streamReply(synthesis, format, codecs)
  return yield* batchReply(synthesis, format, codecs, failed).pipe(
    Effect.catchTag("CodecFailed", ({ reason }) =>
      Effect.fail(new SynthesisFailed({ model: entry.id, detail: reason })),
    ),
  )
})

export const voices = Effect.fn("Speech.voices")(function* (
  httpRequest: HttpServerRequest.HttpServerRequest,
) {
  const id = new URL(httpRequest.url, "http://edge").searchParams.get("model")
  if (id === null || id === "") return yield* new InvalidRequest({ field: "model", problem: "is required" })
  const entry = yield* speechModel(id)
  return HttpServerResponse.jsonUnsafe({
    model: entry.id,
    voices: entry.speech?.voices ?? [],
    cloning: entry.speech?.cloning ?? false,
    languages: entry.speech?.languages ?? ["en"],
  })
})
