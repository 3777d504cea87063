// Measures what models/train/turns/completeness.py learns from: numbers of words of texts, and of spoken sentences what the recogniser
// writes and how their ends sound.
//
//   node bench/turns/endingsMain.ts FOLDER        writes texts.numbers and spoken.numbers, of texts.jsonl and spoken.*
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { Effect } from "effect"
import { completenessWeights, riseWeights } from "#audio/SpeechWeights.ts"
import { completeness, completenessWithRise } from "#domain/activity/Completeness.ts"
import { endingWords } from "#domain/activity/EndingWords.ts"
import { riseOf } from "#domain/activity/MessageEnds.ts"
import { EvaluatedCatalog, loadChatModel, loadTranscriber, transcribe } from "../../models/eval/Engines.ts"
import { endingsOf, heardAt, sentencesIn } from "./Endings.ts"
import { messageEndOf } from "./LanguageModel.ts"

const folder = process.argv[2]!

const numbersOf = (text: string) => {
  const { kinds = [], words = [] } = endingWords(text) ?? {}
  return { kinds, words }
}

if (existsSync(`${folder}/texts.jsonl`)) {
  const lines = readFileSync(`${folder}/texts.jsonl`, "utf8").trimEnd().split("\n")
  const rows = lines.map((line) => {
    const { complete, text } = JSON.parse(line)
    return JSON.stringify({ complete, ...numbersOf(text) })
  })
  writeFileSync(`${folder}/texts.numbers`, rows.join("\n"))
}

const spoken = Effect.gen(function* () {
  const engine = yield* loadTranscriber
  const model = yield* loadChatModel
  const rows: Array<string> = []
  for (const [i, sentence] of (yield* sentencesIn(folder)).entries()) {
    for (const ending of endingsOf(sentence, i)) {
      const heard = heardAt(ending)
      if (heard === undefined) continue
      const { text } = yield* transcribe(engine, heard.samples)
      const complete = ending.isComplete ? 1 : 0
      const late = heard.at - ending.end
      const score = completeness(completenessWeights, text, heard.ending)
      const sound = completenessWithRise(completenessWeights, riseWeights, {
        text,
        ending: heard.ending,
        rise: 0,
        knowsWords: false,
        weight: 0,
      })
      const { ends, stops } = yield* messageEndOf(model, text)
      const rise = riseOf(stops)
      const numbers = { ending: [...heard.ending], score, sound, rise, end: ends.at(-1), stop: stops.at(-1) }
      rows.push(JSON.stringify({ complete, text, late, ...numbers, ...numbersOf(text) }))
    }
  }
  writeFileSync(`${folder}/spoken.numbers`, rows.join("\n"))
  console.log(`${rows.length} endings`)
})

await Effect.runPromise(Effect.scoped(spoken).pipe(Effect.provide(EvaluatedCatalog.at())))
