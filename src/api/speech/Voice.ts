// The `voice` of a cloning model's request for the engine: the default, or a reference clip fetched or decoded.
// An unusable clip is the caller's error: 400 with the field and a reason. Other failures are the node's.
import { Effect } from "effect"
import { decodeClip } from "#audio/DecodeClip.ts"
import type { Decoder } from "#audio/Decoder.ts"
import { VoiceUrl } from "#audio/VoiceUrl.ts"
import { AtCapacity, InvalidRequest, NotInstalled, SynthesisFailed } from "#domain/wire/Errors.ts"
import type { SpeechRequest } from "#domain/wire/Speech.ts"
import type { SynthesizeRequest } from "#engines/protocol/Engine.ts"
import { Caller } from "#services/Caller.ts"
import { UploadDir } from "#services/TranscriptionUpload.ts"

/** Longest reference clip. Longer ones do not improve the likeness; a generous guess. */
const maxClipSeconds = 120
/** Longest transcript: two minutes of very fast speech are 3,000 characters. */
const maxTranscriptCharacters = 10_000
/** Sample rate of decoded clips: that of the product's speech. */
const clipRateHz = 24_000
/** A WAV header is 44 bytes; shorter base64 is the name of a voice. */
const minBase64Characters = 60

const dataUrl = /^data:audio\/[\w.+-]+(?:;[\w.+-]+=[\w.+-]+)*;base64,/i
const httpUrl = /^https?:\/\//i

const bad = (problem: string) => new InvalidRequest({ field: "voice", problem })
const badForm = bad('must be "default", the URL of a reference clip, or a base64 WAV clip')

/** Characters decoded in one tick, a multiple of 4: 8 MB at once would hold the event loop for 20 ms (measured). */
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

/** Among the uploads, whose folder is cleared at a start of files that a crash has left. */
const clipSamples = (model: string, bytes: Uint8Array, user: string) =>
  Effect.flatMap(UploadDir, (spoolDir) =>
    decodeClip(bytes, { maxSeconds: maxClipSeconds, rateHz: clipRateHz, spoolDir, user }),
  ).pipe(
    Effect.mapError((error) => {
      if (error._tag === "AudioRejected") return bad(error.detail)
      if (error.reason === "Absent") return new NotInstalled({ model, part: "an audio decoder" })
      if (error.reason === "Busy") return new AtCapacity({ model, retryAfterMs: 1_000 })
      // Each clip has a decoder of its own: a clip that crashes or hangs it is refused.
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
  AtCapacity | InvalidRequest | NotInstalled | SynthesisFailed,
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
