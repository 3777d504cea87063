// Sentences with pauses at places that are known: whole, and cut at the beginnings of words. models/train/turns/endings.py speaks them.
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Schema } from "effect"
import { decodeClip } from "#audio/DecodeClip.ts"
import { Decoder } from "#audio/Decoder.ts"
import { speechWeights } from "#audio/SpeechWeights.ts"
import { s16ToF32 } from "#domain/audio/Audio.ts"
import { TurnDetector } from "#domain/audio/TurnDetector.ts"
import { RandomNumbers } from "../../models/eval/Conditions.ts"
import { rateHz } from "./Sounds.ts"

const Row = Schema.fromJsonString(
  Schema.Struct({ text: Schema.String, at: Schema.Int, samples: Schema.Int, cuts: Schema.Array(Schema.Int) }),
)

/** A sentence, and positions in it at which a speaker might pause. 16 kHz s16. */
export interface SpokenSentence {
  readonly text: string
  readonly samples: Int16Array
  readonly cuts: ReadonlyArray<number>
}

const sentencesOf = (samples: Int16Array, index: string): ReadonlyArray<SpokenSentence> =>
  index
    .trimEnd()
    .split("\n")
    .map((line) => Schema.decodeUnknownSync(Row)(line))
    .map(({ at, cuts, samples: length, text }) => ({
      text,
      cuts,
      samples: samples.subarray(at, at + length),
    }))

/** Sentences of a folder: `spoken.jsonl` says where each is in `spoken.s16` or `spoken.opus`. */
export const sentencesIn = (folder: string) =>
  Effect.gen(function* () {
    const index = readFileSync(join(folder, "spoken.jsonl"), "utf8")
    if (existsSync(join(folder, "spoken.s16"))) {
      const bytes = readFileSync(join(folder, "spoken.s16"))
      return sentencesOf(new Int16Array(bytes.buffer, bytes.byteOffset, bytes.length / 2), index)
    }
    const clip = decodeClip(join(folder, "spoken.opus"), { maxSeconds: 600, rateHz })
    return sentencesOf(yield* clip.pipe(Effect.provide(Decoder.layer())), index)
  })

/** Sentences and voices that nothing was trained with. */
export const heldOut = sentencesIn(fileURLToPath(new URL("../../models/eval/endings/", import.meta.url)))

/** Speech that ends at `end`, and whether that is the sentence's end. */
export interface Ending {
  readonly isComplete: boolean
  readonly samples: Int16Array
  readonly end: number
}

/** The end of the speech is softened over this long: a cut is no click. */
const fadeSamples = rateHz / 100

const leadSamples = 0.4 * rateHz

/** The sentence, or its part before `cut`, with 0.4 s of silence before and `behind` samples behind, at some loudness over some noise. */
export const endingOf = (
  { samples }: SpokenSentence,
  cut: number,
  seed: number,
  behind: number = 1.6 * rateHz,
  rest: Int16Array = new Int16Array(0),
): Ending => {
  const random = new RandomNumbers(seed)
  const loud = 10 ** (-random.between(0, 20) / 20)
  const noise = 10 ** (-random.between(55, 85) / 20) * 32_768
  const resumes = leadSamples + cut + behind
  const out = new Int16Array(resumes + rest.length)
  for (let at = 0; at < out.length; at++) {
    const said = at - leadSamples
    const fade = Math.min(1, (cut - said) / fadeSamples)
    const spoken = said < 0 || said >= cut ? (rest[at - resumes] ?? 0) : samples[said]! * fade
    out[at] = Math.max(-32_768, Math.min(32_767, Math.round(spoken * loud + random.normal() * noise)))
  }
  return { isComplete: cut === samples.length, samples: out, end: leadSamples + cut }
}

/** The sentence and each of its cuts. */
export const endingsOf = (sentence: SpokenSentence, seed: number): ReadonlyArray<Ending> =>
  [...sentence.cuts, sentence.samples.length].map((cut, i) => endingOf(sentence, cut, seed * 31 + i))

/** What the gateway knows 80 ms after the speech's end. */
interface Heard {
  /** The turn so far, f32 of 16 kHz. */
  readonly samples: Float32Array
  readonly ending: Float32Array
  /** Position of the newest sample. */
  readonly at: number
}

const frame = rateHz / 50
/** Silence after which the words are looked at, as PreviewPlan has it. */
const firstMs = 80

/** Undefined where no turn is open at the end: the speech was not found, or has ended before. */
export const heardAt = ({ end, samples }: Ending): Heard | undefined => {
  const detector = new TurnDetector(speechWeights, {
    silenceMs: 900,
    prefixMs: 300,
    threshold: 0.5,
    judges: true,
  })
  const turn: Array<number> = []
  for (let at = 0; at + frame <= samples.length; at += frame) {
    for (const step of detector.push(samples.subarray(at, at + frame))) {
      if (step.step === "ended") turn.length = 0
      else turn.push(...step.samples)
    }
    const { ending, pause } = detector
    if (
      at + frame < end - 0.1 * rateHz ||
      pause === undefined ||
      pause.quietMs < firstMs ||
      ending === undefined
    )
      continue
    return { samples: s16ToF32(Int16Array.from(turn)), ending, at: at + frame }
  }
  return undefined
}
