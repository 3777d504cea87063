// When `semantic_vad` ends turns: behind complete sentences, and at pauses within them. Runs the gateway's detector, its plan of previews
// and the built-in recogniser, whose words count from the piece of audio on that comes after the time that they took. No sockets.

import { Effect } from "effect"
import { completenessWeights, riseWeights, speechWeights } from "#audio/SpeechWeights.ts"
import { completeness, completenessWithRise } from "#domain/activity/Completeness.ts"
import { riseOf, unfinished } from "#domain/activity/MessageEnds.ts"
import { semanticSilenceMs } from "#domain/activity/SemanticSilence.ts"
import { s16ToF32 } from "#domain/audio/Audio.ts"
import { PreviewPlan } from "#domain/audio/PreviewPlan.ts"
import { TurnDetector } from "#domain/audio/TurnDetector.ts"
import type { TextEngine, TranscriptionEngine } from "#engines/protocol/Engine.ts"
import { percentile } from "#harness/figures/Statistics.ts"
import { figure, type Part } from "#harness/report/Figure.ts"
import { RandomNumbers } from "../../models/eval/Conditions.ts"
import { EvaluatedCatalog, loadChatModel, loadTranscriber, transcribe } from "../../models/eval/Engines.ts"
import { type Ending, endingOf, heldOut, type SpokenSentence } from "./Endings.ts"
import { messageEndOf } from "./LanguageModel.ts"
import { rateHz } from "./Sounds.ts"
import { spokenByVoices } from "./SpokenByVoices.ts"

const frame = rateHz / 50
const perMs = rateHz / 1000
const rules = { silenceMs: semanticSilenceMs("auto", undefined), prefixMs: 300, threshold: 0.5, judges: true }

interface Judged {
  /** Milliseconds from the speech's end to the turn's end; undefined: it did not end. */
  readonly endedMs: number | undefined
  /** The first score after the speech's end, and the first one with the language model. */
  readonly score: number | undefined
  readonly joined: number | undefined
  /** What the language model says of the end then: log probabilities, and the rise. */
  readonly expected: Expected | undefined
  /** Wall time of each score, and of each question to the language model. */
  readonly scoreMs: ReadonlyArray<number>
  readonly modelMs: ReadonlyArray<number>
}

interface Expected {
  readonly end: number | undefined
  readonly stop: number | undefined
  readonly rise: number | undefined
}

interface Ears {
  readonly engine: TranscriptionEngine
  /** Absent: the language model is not asked. */
  readonly model: TextEngine | undefined
  /** Transcripts by the sentence's number and the position of the newest sample: both ways of judging get the same. */
  readonly transcripts: Map<string, { readonly text: string; readonly computeSeconds: number }>
}

const ask = Effect.fnUntraced(function* (model: TextEngine, text: string) {
  const beganMs = performance.now()
  const { ends, stops } = yield* messageEndOf(model, text)
  const tookMs = performance.now() - beganMs
  return { tookMs, expected: { end: ends.at(-1), stop: stops.at(-1), rise: riseOf(stops) } }
})

/** Runs a stream until the turn that is open at the speech's end has ended, or until `until`. */
const judge = Effect.fnUntraced(function* (
  { engine, model, transcripts }: Ears,
  name: string,
  { end, samples }: Ending,
  until: number,
) {
  const detector = new TurnDetector(speechWeights, rules)
  let plan = new PreviewPlan()
  const scoreMs: Array<number> = []
  const modelMs: Array<number> = []
  let turn: Array<Int16Array> = []
  let quiet = 0
  let [score, joined]: Array<number | undefined> = []
  let expected: Expected | undefined
  let coming: { readonly atMs: number; readonly text: string } | undefined
  let answer: { readonly atMs: number; readonly text: string; readonly expected: Expected } | undefined
  /** Each text is asked about once. */
  const known = new Map<string, Expected>()
  const judged = (endedMs: number | undefined): Judged => ({
    endedMs,
    score,
    joined,
    expected,
    scoreMs,
    modelMs,
  })
  for (let at = 0; at + frame <= until; at += frame) {
    const now = at + frame
    for (const step of detector.push(samples.subarray(at, now))) {
      if (step.step !== "ended") turn.push(step.samples)
      // Before: a sentence with a pause of its own.
      else if (now > end) return judged((now - end) / perMs)
      else turn = []
    }
    const { pause } = detector
    const quietMs = pause?.quietMs ?? 0
    if (quietMs < quiet) {
      plan = new PreviewPlan()
      coming = undefined
      answer = undefined
    }
    quiet = quietMs
    if (pause === undefined || quietMs === 0) continue
    if (coming !== undefined && now / perMs >= coming.atMs) {
      const beganMs = performance.now()
      const found = completeness(completenessWeights, coming.text, detector.ending!)
      scoreMs.push(performance.now() - beganMs)
      detector.setSilence(semanticSilenceMs("auto", found))
      if (now > end) score ??= found
      if (model !== undefined) {
        const text = unfinished(coming.text)
        const asked = known.has(text) ? undefined : yield* ask(model, coming.text)
        if (asked !== undefined) {
          known.set(text, asked.expected)
          modelMs.push(asked.tookMs)
        }
        answer = { atMs: now / perMs + (asked?.tookMs ?? 0), text: coming.text, expected: known.get(text)! }
      }
      coming = undefined
    }
    if (answer !== undefined && now / perMs >= answer.atMs) {
      const { rise } = answer.expected
      if (rise !== undefined) {
        const heard = { text: answer.text, ending: detector.ending!, rise, knowsWords: true, weight: 1 }
        const found = completenessWithRise(completenessWeights, riseWeights, heard)
        detector.setSilence(semanticSilenceMs("auto", found))
        if (now > end) joined ??= found
      }
      if (now > end) expected ??= answer.expected
      answer = undefined
    }
    if (coming !== undefined || !plan.isDue({ quietMs, endsAtMs: detector.pause!.endsAtMs })) continue
    const heard = Int16Array.from(turn.flatMap((piece) => [...piece]))
    const key = `${name} ${at}`
    const { computeSeconds, text } = transcripts.get(key) ?? (yield* transcribe(engine, s16ToF32(heard)))
    transcripts.set(key, { computeSeconds, text })
    plan = plan.made({ quietMs, tookMs: computeSeconds * 1000 })
    coming = { atMs: now / perMs + computeSeconds * 1000, text }
  }
  return judged(undefined)
})

/** How often a complete sentence has a higher score than a part of one. */
const areaOf = (whole: ReadonlyArray<number>, parts: ReadonlyArray<number>): number =>
  whole.reduce(
    (sum, one) => sum + parts.reduce((more, other) => more + (one > other ? 1 : one === other ? 0.5 : 0), 0),
    0,
  ) /
  (whole.length * parts.length)

const defined = <A>(values: ReadonlyArray<A | undefined>): ReadonlyArray<A> =>
  values.flatMap((value) => (value === undefined ? [] : [value]))

const measure = Effect.fnUntraced(function* (ears: Ears, sentences: ReadonlyArray<SpokenSentence>) {
  const [whole, parts]: [Array<Judged>, Array<Judged>] = [[], []]
  for (const [i, sentence] of sentences.entries()) {
    const { cuts, samples } = sentence
    const said = endingOf(sentence, samples.length, i * 31)
    whole.push(yield* judge(ears, `${i}`, said, said.samples.length))
    for (const [k, cut] of cuts.entries()) {
      const pause = Math.floor(new RandomNumbers(i * 31 + k + 1).between(300, 700)) * perMs
      const paused = endingOf(sentence, cut, i * 31 + k + 1, pause, samples.subarray(cut))
      parts.push(yield* judge(ears, `${i} ${k}`, paused, paused.end + pause))
    }
  }
  return { whole, parts }
})

const goal = (value: number) => ({ is: "at most", value }) as const

interface Measured {
  readonly whole: ReadonlyArray<Judged>
  readonly parts: ReadonlyArray<Judged>
}

const endsOf = (who: string, { parts, whole }: Measured) => {
  const ends = defined(whole.map(({ endedMs }) => endedMs))
  const early = parts.filter(({ endedMs }) => endedMs !== undefined).length
  return [
    figure(
      `${who}, ${whole.length} sentences: last sample to the turn's end, p50`,
      "ms",
      [percentile(ends, 0.5)],
      goal(300),
    ),
    figure(`${who}: the same, p90`, "ms", [percentile(ends, 0.9)]),
    figure(`${who}: the same, longest`, "ms", [Math.max(...ends)], goal(1_500)),
    figure(`${who}: ended within 300 ms`, "%", [
      (100 * ends.filter((ms) => ms <= 300).length) / whole.length,
    ]),
    figure(`${who}: not ended`, "", [whole.length - ends.length], goal(0)),
    figure(
      `${who}, ${parts.length} pauses within sentences: turns ended`,
      "%",
      [(100 * early) / parts.length],
      goal(5),
    ),
  ]
}

const areasOf = (who: string, { parts, whole }: Measured) => {
  const views: Readonly<Record<string, (judged: Judged) => number | undefined>> = {
    "the score": ({ score }) => score,
    "the score with the language model": ({ joined, score }) => joined ?? score,
    "the language model's end of the message": ({ expected }) => expected?.end,
    "its end or full stop": ({ expected }) => expected?.stop,
    "its rise": ({ expected }) => expected?.rise,
  }
  return Object.entries(views).map(([name, view]) =>
    figure(`${who}: area under the curve of ${name}`, "", [
      areaOf(defined(whole.map(view)), defined(parts.map(view))),
    ]),
  )
}

const figuresOf = Effect.fnUntraced(function* (
  engine: TranscriptionEngine,
  model: TextEngine,
  who: string,
  sentences: ReadonlyArray<SpokenSentence>,
) {
  const transcripts: Ears["transcripts"] = new Map()
  const alone = yield* measure({ engine, model: undefined, transcripts }, sentences)
  const both = yield* measure({ engine, model, transcripts }, sentences)
  const all = [...both.whole, ...both.parts]
  const scoreMs = all.flatMap((judged) => judged.scoreMs)
  const modelMs = all.flatMap((judged) => judged.modelMs)
  return [
    ...endsOf(who, alone),
    ...endsOf(`${who}, with the language model`, both),
    ...areasOf(who, both),
    figure(`${who}: time of a score, p50`, "ms", [percentile(scoreMs, 0.5)], goal(1)),
    figure(`${who}: time of a question to the language model, p50`, "ms", [percentile(modelMs, 0.5)]),
    figure(`${who}: the same, p95`, "ms", [percentile(modelMs, 0.95)]),
  ]
})

/** `every`: one of so many sentences. */
export const semanticEnds = (every: number): Effect.Effect<Part> =>
  Effect.gen(function* () {
    const engine = yield* loadTranscriber
    const model = yield* loadChatModel
    const sentences = (yield* heldOut).filter((_, i) => i % every === 0)
    const voices = yield* spokenByVoices(sentences.map(({ text }) => text))
    return {
      title: "Semantic end of turn",
      method:
        "Sentences of models/eval/endings, half of them written by hand, which were not trained, spoken by six voices of espeak-ng that were not, and by the built-in voices, none of which was. Pauses of 300 to 700 ms at random words of them. eagerness auto, built-in recogniser in this process, events of 20 ms, noise at -55 to -85 dBFS.",
      figures: [
        ...(yield* figuresOf(engine, model, "espeak-ng", sentences)),
        ...(yield* figuresOf(engine, model, "built-in voices", voices)),
      ],
    } satisfies Part
  }).pipe(Effect.scoped, Effect.provide(EvaluatedCatalog.at()), Effect.orDie)
