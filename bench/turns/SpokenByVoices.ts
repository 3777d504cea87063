// Sentences spoken by the built-in voices, which come from another program than those of models/eval/endings, with the times of words.
import { Effect } from "effect"
import type { PcmChunk } from "#engines/protocol/Engine.ts"
import { RandomNumbers } from "../../models/eval/Conditions.ts"
import { collector, loadVoices, toTranscriberInput } from "../../models/eval/Engines.ts"
import type { SpokenSentence } from "./Endings.ts"
import { rateHz } from "./Sounds.ts"

/** Sounding means more than 30 dB below the peak. */
const audibleShare = 0.03
const mostCuts = 3
const voiceRateHz = 24_000

/** Each text by one of the voices, with up to three of its words' beginnings. */
export const spokenByVoices = Effect.fnUntraced(function* (texts: ReadonlyArray<string>) {
  const engine = yield* loadVoices
  const { voices } = engine.facts
  const out: Array<SpokenSentence> = []
  for (const [i, text] of texts.entries()) {
    const random = new RandomNumbers(i)
    const chunks = collector<PcmChunk>()
    const voice = { preset: voices[i % voices.length]! }
    yield* engine.synthesize({ text, voice, language: "en", speed: random.between(0.85, 1.2) }, chunks)
    const all = Int16Array.from(chunks.units.flatMap(({ samples }) => [...samples]))
    const said = toTranscriberInput(all)
    const peak = said.reduce((most, sample) => Math.max(most, Math.abs(sample)), 1e-6)
    const isAudible = (sample: number) => Math.abs(sample) > peak * audibleShare
    const [first, last] = [said.findIndex(isAudible), said.findLastIndex(isAudible) + 1]
    const starts = chunks.units
      .flatMap(({ words = [] }) => words)
      .slice(1)
      .map(({ start }) => Math.round((start * rateHz) / voiceRateHz) - first)
      .filter((start) => start > rateHz / 5 && start < last - first - rateHz / 10)
    const cuts = starts
      .map((start) => ({ start, order: random.between(0, 1) }))
      .toSorted((one, other) => one.order - other.order)
      .slice(0, mostCuts)
      .map(({ start }) => start)
    const samples = Int16Array.from(said.subarray(first, last), (sample) => (sample / peak) * 23_000)
    out.push({ text, samples, cuts })
  }
  return out
})
