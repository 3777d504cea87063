// Two builds of eSpeak NG are installed: `phonemizer` for English and `@echogarden/espeak-ng-emscripten` for the other languages. This compares
// their symbols of English sentences, in both accents: those of this repository's documentation. docs/dependencies.md says why both are there; if they become
// equal, `phonemizer` can go.
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { expect, it } from "vitest"
import { type EspeakVoice, loadEnglish } from "#engines/kokoro/Espeak.ts"
import { loadEspeak } from "#engines/kokoro/EspeakLanguages.ts"
import { phonemeFragments, rewriteEnglish } from "#engines/kokoro/KokoroPhonemes.ts"

const docs = fileURLToPath(import.meta.resolve("../../../docs"))
const count = 2_000

/** Sentences of 20 to 300 ASCII characters, without code, tables and links. */
const sentencesOf = (text: string): ReadonlyArray<string> =>
  text
    .replace(/```[\s\S]*?```/g, " ")
    .split("\n\n")
    .filter((paragraph) => !/^\s*[|#<]/.test(paragraph))
    .join("\n\n")
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/[`*_]/g, "")
    .replace(/\s+/g, " ")
    .split(/(?<=[.!?]) (?=[A-Z])/)
    .filter((sentence) => /^[A-Z][\x20-\x7e]{19,299}$/.test(sentence))

const files = (readdirSync(docs, { recursive: true }) as ReadonlyArray<string>)
  .filter((file) => file.endsWith(".md"))
  .sort()
const sentences = [
  ...new Set(files.flatMap((file) => sentencesOf(readFileSync(join(docs, file), "utf8")))),
].slice(0, count)

const english = (await Effect.runPromise(loadEnglish))!
const others = (await Effect.runPromise(loadEspeak))!

const symbolsOf = async (sentence: string, british: boolean, ipaOf: (clause: string) => Promise<string>) => {
  let symbols = ""
  const clauses = phonemeFragments(sentence, async (clause) => rewriteEnglish(await ipaOf(clause), british))
  for await (const { phonemes } of clauses) symbols += phonemes
  // The other build is read without hyphens and dots.
  return symbols.replace(/[-.]/g, "").replace(/\s+/g, " ").trim()
}

/** Sentences with other symbols, and how many words of all of them differ. */
const differences = async (voice: EspeakVoice) => {
  const british = voice === "en"
  let differ = 0
  let words = 0
  let otherWords = 0
  for (const sentence of sentences) {
    const one = await symbolsOf(sentence, british, (clause) => english(clause, voice))
    const two = await symbolsOf(sentence, british, async (clause) => others.phonemes(clause, voice))
    if (one === two) continue
    differ++
    // The only known difference: the vowel of "north" and that of "force" are one in the newer build.
    const merged = one.split(" ").map((word) => word.replaceAll("oːɹ", "ɔːɹ"))
    const theirs = two.split(" ")
    for (const [at, word] of one.split(" ").entries()) if (word !== theirs[at]) words++
    for (const [at, word] of merged.entries()) if (word !== theirs[at]) otherWords++
  }
  return { differ, words, otherWords }
}

it("give equal symbols for British English, and one vowel otherwise for American English", async () => {
  expect(sentences).toHaveLength(count)
  const british = await differences("en")
  const american = await differences("en-us")
  console.log({ british, american })
  expect(british.differ).toBe(0)
  expect(american.differ).toBeGreaterThan(0)
  // Of the first 100 sentences there are none.
  expect(american.otherWords).toBeLessThanOrEqual(american.words / 100)
}, 1_800_000)
