// The evaluation set of the built-in models was never in training: its sentences are on the evaluation side of the
// split that the training text's generator obeys, and none of them is among the sentences that were trained.
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { evaluationSet } from "../eval/EvaluationSet.ts"

const models = new URL("../", import.meta.url)
const read = (name: string): Buffer => readFileSync(new URL(name, models))

// The rule of models/train/common/split.py, implemented independently.
const evaluationBytes = 64
const manifestBytes = 5
const normalised = (sentence: string): string =>
  sentence
    .normalize("NFC")
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}' ]/gu, " ")
    .replaceAll(/\s+/g, " ")
    .trim()
const digest = (sentence: string): Buffer => createHash("sha256").update(normalised(sentence)).digest()
const isEvaluation = (sentence: string): boolean => digest(sentence)[0]! < evaluationBytes

/** Digest beginnings of every sentence of the training shards, as `python3 -m ears.data … --manifest` writes them. */
const manifestOf = (name: string): ReadonlyArray<Buffer> => {
  const bytes = read(`train/manifest/${name}.sha40`)
  const starts = Array.from({ length: bytes.length / manifestBytes }, (_, i) => i * manifestBytes)
  return starts.map((start) => bytes.subarray(start, start + manifestBytes))
}
const trained = manifestOf("ears")
const trainedInEightLanguages = manifestOf("ears-languages")

/** Whether a sentence was trained, for the given beginnings. */
const among = (starts: ReadonlyArray<Buffer>) => {
  const known = new Set(starts.map((start) => start.toString("hex")))
  return (sentence: string) => known.has(digest(sentence).subarray(0, manifestBytes).toString("hex"))
}

const spoken = evaluationSet.speech.flatMap(({ segments }) => segments.map(({ text }) => text))
const linesOf = (name: string): ReadonlyArray<string> =>
  read(name)
    .toString("utf8")
    .split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"))
const freeSentences = linesOf("eval/free.txt")
const references = evaluationSet.references.map(({ text }) => text)

describe("the evaluation set", () => {
  it("has as many sentences as the model cards say", () => {
    expect(spoken.length).toBe(88)
    expect(new Set(spoken).size).toBe(88)
    expect(evaluationSet.roundTrip.length).toBe(12)
    expect(references.length).toBe(10)
  })

  it("is on the evaluation side of the split, every sentence of it", () => {
    const wrong = [...spoken, ...evaluationSet.roundTrip, ...freeSentences].filter((s) => !isEvaluation(s))
    expect(wrong).toEqual([])
  })

  it.each(Object.entries(evaluationSet.languages))(
    "has 30 sentences of %s, all on the evaluation side, the hand-written ones among them",
    (language, recordings) => {
      const sentences = recordings.flatMap(({ segments }) => segments)
      const texts = sentences.map(({ text }) => text)
      const free = linesOf(`eval/languages/free.${language}.txt`)
      expect(new Set(texts).size).toBe(30)
      expect([...texts, ...free].filter((text) => !isEvaluation(text))).toEqual([])
      expect(new Set(sentences.filter(({ kind }) => kind === "free").map(({ text }) => text))).toEqual(
        new Set(free),
      )
    },
  )

  it("has 64 sentences with words that the training never had, and neither phrases nor the list of words have them", () => {
    const texts = evaluationSet.unheard.flatMap(({ segments }) => segments.map(({ text }) => text))
    expect(new Set(texts)).toEqual(new Set(linesOf("eval/unheard.txt")))
    expect(texts.length).toBe(64)
    expect(texts.filter((text) => !isEvaluation(text))).toEqual([])
    const vocabulary = read("train/text/vocabulary.txt").toString("utf8").toLowerCase()
    const written = new Set(vocabulary.split(/[\s=]+/))
    // Inflections are made of the vocabulary's words: what only looks new is not counted.
    const isForm = (word: string) =>
      ["s", "es", "ed", "d", "ing"].some(
        (end) => word.endsWith(end) && written.has(word.slice(0, -end.length)),
      ) || written.has(word.replace(/(.)\1(?:ed|ing)$/, "$1"))
    const fresh = texts.map((text) =>
      normalised(text)
        .split(" ")
        .filter((word) => !written.has(word) && !isForm(word)),
    )
    expect(fresh.filter((words) => words.length === 0)).toEqual([])
    expect(new Set(fresh.flat()).size).toBeGreaterThan(150)
    const phrases = new Set(normalised(read("train/text/phrases.txt").toString("utf8")).split(" "))
    expect(phrases.size).toBeGreaterThan(5_000)
    expect(fresh.flat().filter((word) => phrases.has(word))).toEqual([])
  })

  it("holds hand-written sentences where its split is `free`", () => {
    const free = evaluationSet.speech.flatMap(({ segments }) =>
      segments.filter(({ kind }) => kind === "free"),
    )
    expect(free.length).toBe(44)
    expect(
      [...free.map(({ text }) => text), ...evaluationSet.roundTrip].filter((s) => !freeSentences.includes(s)),
    ).toEqual([])
  })
})

describe("the training text", () => {
  it("is on the training side: the generator let no evaluation sentence out", () => {
    for (const starts of [trained, trainedInEightLanguages]) {
      expect(starts.length).toBeGreaterThan(20_000)
      expect(starts.filter((start) => start[0]! < evaluationBytes).length).toBe(0)
    }
  })

  it("is what this test believes it is: the first three sentences of the first shard are found in it", () => {
    const english = [
      "Anywhere posts shouldn't activate although she only his Hill that backpack waits joked though we.",
      "Under crowded nineteen when all these nitrogen daisies Grace snows spend past that.",
      "I have fifty four boards and forty six surveys.",
    ]
    const ofEightLanguages = [
      "Bergen fünfundvierzig Möglichkeiten stritten besserer erkennen geschützt Oberschenkel Täter Notaufnahme nirgendwo Motorrad.",
      "Alles wat een tandarts eet, is plat.",
      "Zijn noodgeval gerust bestuurd spannendste Parijs onmiddellijk printte.",
    ]
    expect(english.map(among(trained))).toEqual([true, true, true])
    expect(ofEightLanguages.map(among(trainedInEightLanguages))).toEqual([true, true, true])
  })

  it("has none of the sentences that the ears and the voices are judged by", () => {
    const ofLanguages = Object.values(evaluationSet.languages).flat()
    const judged = [
      ...[...evaluationSet.speech, ...evaluationSet.unheard, ...ofLanguages].flatMap(({ segments }) =>
        segments.map(({ text }) => text),
      ),
      ...freeSentences,
      ...references,
    ]
    expect(judged.filter(among(trained))).toEqual([])
    expect(judged.filter(among(trainedInEightLanguages))).toEqual([])
  })

  it("has frames without a slot only where their one sentence may be trained", () => {
    const frames = read("train/text/patterns.txt").toString("utf8").split("\n")
    const fixed = frames.filter((line) => line !== "" && !line.startsWith("#") && !line.includes("{"))
    expect(fixed.length).toBeGreaterThan(5)
    const wasTrained = among(trained)
    expect(fixed.filter((sentence) => isEvaluation(sentence) && wasTrained(sentence))).toEqual([])
  })
})
