// The `voice` of a cloning model's request as the engine wants it: the default, or a reference clip fetched or decoded.
// What is wrong with a clip is the caller's and is told in words, 400 with the field; what is wrong here is not.
import { Effect } from "effect"
import { decodeClip } from "#audio/DecodeClip.ts"
import type { Decoder } from "#audio/Decoder.ts"
import { VoiceUrl } from "#audio/VoiceUrl.ts"
import { AtCapacity, InvalidRequest, SynthesisFailed } from "#domain/wire/Errors.ts"
import type { SpeechRequest } from "#domain/wire/Speech.ts"
import type { SynthesizeRequest } from "#engines/protocol/Engine.ts"
import { Caller } from "#services/Caller.ts"
import { UploadDir } from "#services/TranscriptionUpload.ts"

/** Longest reference clip. Longer ones add nothing to a likeness; a guess that is generous to callers. */
const maxClipSeconds = 120
/** Longest transcript: two minutes of very fast speech are 3,000 characters. */
const maxTranscriptCharacters = 10_000
/** What a clip is decoded to: the rate that the product speaks at. */
const clipRateHz = 24_000
/** A WAV header is 44 bytes; what is shorter in base64 is a name that somebody tried. */
const minBase64Characters = 60

const dataUrl = /^data:audio\/[\w.+-]+(?:;[\w.+-]+=[\w.+-]+)*;base64,/i
const httpUrl = /^https?:\/\//i

const bad = (problem: string) => new InvalidRequest({ field: "voice", problem })
const badForm = bad('must be "default", the URL of a reference clip, or a base64 WAV clip')

/** Decoded at a time, a multiple of 4: 8 MB at once would hold the event loop for 20 ms (measured). */
const sliceCharacters = 512 * 1024
const base64 = /^[A-Za-z0-9+/_-]*={0,2}$/

/** Base64 with or without line breaks and padding, of either alphabet, as bytes. */
const fromBase64 = Effect.fnUntraced(function* (text: string) {
  const parts: Array<Buffer> = []
  let rest = ""
  for (let at = 0; at < text.length; at += sliceCharacters) {
    const last = at + sliceCharacters >= text.length
    const slice = rest + text.slice(at, at + sliceCharacters).replace(/[\r\n]/g, "")
    const whole = last ? slice.length : slice.length - (slice.length % 4)
    const part = slice.slice(0, whole)
    rest = slice.slice(whole)
    if (!base64.test(part) || (!last && part.endsWith("="))) return yield* badForm
    parts.push(Buffer.from(part, "base64"))
    if (!last) yield* Effect.sleep(0)
  }
  return Buffer.concat(parts)
})

const clipBytes = (model: string, voice: string, user: string) => {
  if (!httpUrl.test(voice)) {
    const text = voice.slice(dataUrl.exec(voice.slice(0, 200))?.[0].length ?? 0)
    return text.length < minBase64Characters ? Effect.fail(badForm) : fromBase64(text)
  }
  return Effect.flatMap(VoiceUrl, (urls) => urls.fetch(voice, user)).pipe(
    Effect.mapError(({ detail, reason }) =>
      reason === "Busy" ? new AtCapacity({ model, retryAfterMs: 1_000 }) : bad(detail),
    ),
  )
}

/** Among the uploads, whose folder is cleared at a start of what a crash has left. */
const clipSamples = (model: string, bytes: Uint8Array, user: string) =>
  Effect.flatMap(UploadDir, (spoolDir) =>
    decodeClip(bytes, { maxSeconds: maxClipSeconds, rateHz: clipRateHz, spoolDir, user }),
  ).pipe(
    Effect.mapError((error) => {
      if (error._tag === "AudioRejected") return bad(error.detail)
      if (error.reason === "Busy") return new AtCapacity({ model, retryAfterMs: 1_000 })
      // Each clip has a decoder to itself: one that kills it or hangs in it is no clip.
      return error.reason === "Died" || error.reason === "Hung"
        ? bad("the reference clip could not be decoded")
        : new SynthesisFailed({ model, detail: error.reason })
    }),
  )

/** The voice of a cloning model's request. */
export const clonedVoice = (
  request: SpeechRequest,
): Effect.Effect<
  SynthesizeRequest["voice"],
  AtCapacity | InvalidRequest | SynthesisFailed,
  Caller | Decoder | VoiceUrl
> =>
  Effect.gen(function* () {
    const { model, voice } = request
    if (voice === "default") return { preset: "default" }
    if (!httpUrl.test(voice) && voice.length < minBase64Characters) return yield* badForm
    const transcript = request.voice_transcript ?? ""
    const field = "voice_transcript"
    if (transcript.trim() === "") {
      const problem = "is required with a reference clip: the exact words spoken in it"
      return yield* new InvalidRequest({ field, problem })
    }
    if (transcript.length > maxTranscriptCharacters) {
      const problem = `must not be longer than ${maxTranscriptCharacters} characters`
      return yield* new InvalidRequest({ field, problem })
    }
    const { userId } = yield* Caller
    const clip = yield* clipSamples(model, yield* clipBytes(model, voice, userId), userId)
    return { clip, rateHz: clipRateHz, transcript }
  })
