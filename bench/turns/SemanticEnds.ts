// When `semantic_vad` ends turns: behind complete sentences, and at pauses within them. Runs the gateway's detector, its plan of previews
// and the built-in recogniser, whose words count from the piece of audio on that comes after the time that they took. No sockets.
import { Effect } from "effect"
import { PreviewPlan } from "#actors/live/PreviewPlan.ts"
import { completenessWeights, speechWeights } from "#audio/SpeechWeights.ts"
import { completeness } from "#domain/activity/Completeness.ts"
import { semanticSilenceMs } from "#domain/activity/SemanticSilence.ts"
import { s16ToF32 } from "#domain/audio/Audio.ts"
import { TurnDetector } from "#domain/audio/TurnDetector.ts"
import type { TranscriptionEngine } from "#engines/protocol/Engine.ts"
import { RandomNumbers } from "../models/Conditions.ts"
import { EvaluatedCatalog, loadTranscriber, transcribe } from "../models/Engines.ts"
import { finding, type Section } from "../support/Findings.ts"
import { type Ending, endingOf, heldOut, type SpokenSentence } from "./Endings.ts"
import { rateHz } from "./Sounds.ts"
import { spokenByVoices } from "./SpokenByVoices.ts"

const frame = rateHz / 50
const perMs = rateHz / 1000
const rules = { silenceMs: semanticSilenceMs("auto", undefined), prefixMs: 300, threshold: 0.5, judges: true }

interface Judged {
  /** Milliseconds from the speech's end to the turn's end; undefined: it did not end. */
  readonly endedMs: number | undefined
  /** The first score after the speech's end. */
  readonly score: number | undefined
  /** Wall time of each score. */
  readonly scoreMs: ReadonlyArray<number>
}

/** Runs a stream until the turn that is open at the speech's end has ended, or until `until`. */
const judge = Effect.fnUntraced(function* (
  engine: TranscriptionEngine,
  { end, samples }: Ending,
  until: number,
) {
  const detector = new TurnDetector(speechWeights, rules)
  const plan = new PreviewPlan()
  const scoreMs: Array<number> = []
  let turn: Array<Int16Array> = []
  let [quiet, score]: [number, number | undefined] = [0, undefined]
  let coming: { readonly atMs: number; readonly text: string } | undefined
  for (let at = 0; at + frame <= until; at += frame) {
    const now = at + frame
    for (const step of detector.push(samples.subarray(at, now))) {
      if (step.step !== "ended") turn.push(step.samples)
      // Before: a sentence with a pause of its own.
      else if (now > end) return { endedMs: (now - end) / perMs, score, scoreMs } satisfies Judged
      else turn = []
    }
    const { pause } = detector
    const quietMs = pause?.quietMs ?? 0
    if (quietMs < quiet) {
      plan.forget()
      coming = undefined
    }
    quiet = quietMs
    if (pause === undefined || quietMs === 0) continue
    if (coming !== undefined && now / perMs >= coming.atMs) {
      const beganMs = performance.now()
      const found = completeness(completenessWeights, coming.text, detector.ending!)
      scoreMs.push(performance.now() - beganMs)
      detector.setSilence(semanticSilenceMs("auto", found))
      if (now > end) score ??= found
      coming = undefined
    }
    if (coming !== undefined || !plan.isDue({ quietMs, endsAtMs: detector.pause!.endsAtMs })) continue
    const heard = Int16Array.from(turn.flatMap((piece) => [...piece]))
    const { computeSeconds, text } = yield* transcribe(engine, s16ToF32(heard))
    plan.made({ quietMs, tookMs: computeSeconds * 1000 })
    coming = { atMs: now / perMs + computeSeconds * 1000, text }
  }
  return { endedMs: undefined, score, scoreMs } satisfies Judged
})

/** How often a complete sentence has a higher score than a part of one. */
const areaOf = (whole: ReadonlyArray<number>, parts: ReadonlyArray<number>): number =>
  whole.reduce(
    (sum, one) => sum + parts.reduce((more, other) => more + (one > other ? 1 : one === other ? 0.5 : 0), 0),
    0,
  ) /
  (whole.length * parts.length)

const at = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ??
  Number.NaN

const scoresOf = (judged: ReadonlyArray<Judged>) =>
  judged.flatMap(({ score }) => (score === undefined ? [] : [score]))

const measure = Effect.fnUntraced(function* (
  engine: TranscriptionEngine,
  sentences: ReadonlyArray<SpokenSentence>,
) {
  const [whole, parts]: [Array<Judged>, Array<Judged>] = [[], []]
  for (const [i, sentence] of sentences.entries()) {
    const { cuts, samples } = sentence
    const said = endingOf(sentence, samples.length, i * 31)
    whole.push(yield* judge(engine, said, said.samples.length))
    for (const [k, cut] of cuts.entries()) {
      const pause = Math.floor(new RandomNumbers(i * 31 + k + 1).between(300, 700)) * perMs
      const paused = endingOf(sentence, cut, i * 31 + k + 1, pause, samples.subarray(cut))
      parts.push(yield* judge(engine, paused, paused.end + pause))
    }
  }
  return { whole, parts }
})

const goal = (value: number) => ({ is: "at most", value }) as const

const findingsOf = Effect.fnUntraced(function* (
  engine: TranscriptionEngine,
  who: string,
  sentences: ReadonlyArray<SpokenSentence>,
) {
  const { parts, whole } = yield* measure(engine, sentences)
  const ends = whole.flatMap(({ endedMs }) => (endedMs === undefined ? [] : [endedMs]))
  const early = parts.filter(({ endedMs }) => endedMs !== undefined).length
  const scoreMs = [...whole, ...parts].flatMap((judged) => judged.scoreMs)
  const counts = `${who}, ${whole.length} sentences`
  return [
    finding(`${counts}: last sample to the turn's end, p50`, "ms", [at(ends, 0.5)], goal(300)),
    finding(`${who}: the same, p90`, "ms", [at(ends, 0.9)]),
    finding(`${who}: the same, longest`, "ms", [Math.max(...ends)], goal(1_500)),
    finding(`${who}: ended within 300 ms`, "%", [
      (100 * ends.filter((ms) => ms <= 300).length) / whole.length,
    ]),
    finding(`${who}: not ended`, "", [whole.length - ends.length], goal(0)),
    finding(
      `${who}, ${parts.length} pauses within sentences: turns ended`,
      "%",
      [(100 * early) / parts.length],
      goal(5),
    ),
    finding(`${who}: area under the curve of the score`, "", [areaOf(scoresOf(whole), scoresOf(parts))]),
    finding(`${who}: wall time of a score, p50`, "ms", [at(scoreMs, 0.5)], goal(1)),
  ]
})

/** `every`: one of so many sentences. */
export const semanticEnds = (every: number): Effect.Effect<Section> =>
  Effect.gen(function* () {
    const engine = yield* loadTranscriber
    const sentences = (yield* heldOut).filter((_, i) => i % every === 0)
    const voices = yield* spokenByVoices(sentences.map(({ text }) => text))
    return {
      title: "Semantic end of turn",
      method:
        "Sentences of models/eval/endings, half of them written by hand, which were not trained, spoken by six voices of espeak-ng that were not, and by the built-in voices, none of which was. Pauses of 300 to 700 ms at random words of them. eagerness auto, built-in recogniser in this process, events of 20 ms, noise at -55 to -85 dBFS.",
      findings: [
        ...(yield* findingsOf(engine, "espeak-ng", sentences)),
        ...(yield* findingsOf(engine, "built-in voices", voices)),
      ],
    } satisfies Section
  }).pipe(Effect.scoped, Effect.provide(EvaluatedCatalog.at()), Effect.orDie)
