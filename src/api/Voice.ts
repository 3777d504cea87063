// The `voice` of a speech request as the engine wants it: a preset, or a reference clip fetched or decoded.
// Every failure here is the caller's and is told in words: 400 with the field.
import { Effect } from "effect"
import type { Decoder } from "#audio/Decoder.ts"
import { decodeClip } from "#audio/ReferenceClip.ts"
import { VoiceUrl } from "#audio/VoiceUrl.ts"
import { InvalidRequest } from "#domain/Errors.ts"
import type { SpeechRequest } from "#domain/Speech.ts"
import type { SynthesizeRequest } from "#engines/Engine.ts"

/** Longest reference clip. Longer ones add nothing to a likeness; a guess that is generous to callers. */
const maxClipSeconds = 120

/** What a clip is decoded to: the rate that the product speaks at. */
const clipRateHz = 24_000

const dataUrl = /^data:audio\/[\w.+-]+;base64,/i
const base64 = /^[A-Za-z0-9+/_-]+={0,2}$/

const bad = (problem: string) => new InvalidRequest({ field: "voice", problem })

const clipBytes = (voice: string): Effect.Effect<Uint8Array, InvalidRequest, VoiceUrl> => {
  if (/^https?:\/\//i.test(voice)) {
    return Effect.flatMap(VoiceUrl, (urls) => urls.fetch(voice)).pipe(
      Effect.mapError(({ detail }) => bad(detail)),
    )
  }
  const text = voice.replace(dataUrl, "").replace(/[\r\n]/g, "")
  if (!base64.test(text) || text.length < 64) {
    return Effect.fail(bad('must be "default", the URL of a reference clip, or a base64 WAV clip'))
  }
  return Effect.succeed(Buffer.from(text, "base64"))
}

/** The voice of a cloning model's request. */
export const clonedVoice = (
  request: SpeechRequest,
): Effect.Effect<SynthesizeRequest["voice"], InvalidRequest, Decoder | VoiceUrl> =>
  Effect.gen(function* () {
    if (request.voice === "default") return { preset: "default" }
    const transcript = request.voice_transcript ?? ""
    if (transcript.trim() === "") {
      return yield* new InvalidRequest({
        field: "voice_transcript",
        problem: "is required with a reference clip: the exact words spoken in it",
      })
    }
    const bytes = yield* clipBytes(request.voice)
    const clip = yield* decodeClip(bytes, { maxSeconds: maxClipSeconds, rateHz: clipRateHz }).pipe(
      Effect.mapError(({ detail }) => bad(detail)),
    )
    return { clip, rateHz: clipRateHz, transcript }
  })
