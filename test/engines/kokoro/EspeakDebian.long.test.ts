// The symbols of Kokoro's languages against another build of eSpeak NG, Debian's: it ties the letters of a sound itself ("t^ʃ"), and the published
// mapping of such pairs is applied to what it prints. Two hundred sentences a language.
import { execFileSync } from "node:child_process"
import { Effect } from "effect"
import { expect, it } from "vitest"
import { loadEspeak } from "#engines/kokoro/EspeakLanguages.ts"
import { espeakFragments, espeakVoices } from "#engines/kokoro/OtherLanguages.ts"
import { needs } from "../../support/groups/Needs.ts"
import { sentencesIn } from "./languageSentences.ts"

const espeak = (await Effect.runPromise(loadEspeak))!

const published: ReadonlyArray<string> =
  "a^ɪ=I a^ʊ=W d^z=ʣ d^ʒ=ʤ e^ɪ=A o^ʊ=O s^s=S t^s=ʦ t^ʃ=ʧ ə^ʊ=Q ɔ^ɪ=Y ^= -=".split(" ")

/** A line for each sentence. */
const debianSymbols = (sentences: ReadonlyArray<string>, voice: string): ReadonlyArray<string> => {
  const input = sentences.join("\n\n")
  let out = execFileSync("espeak-ng", ["-q", "--ipa", "--tie=^", "-v", voice, "--stdin"], {
    input,
    encoding: "utf8",
  }).replace(/\([a-z-]+\)/g, "")
  for (const row of published) {
    const [from, to] = row.split("=") as [string, string]
    out = out.replaceAll(from, to)
  }
  return out.split("\n").flatMap((line) => (line.trim() === "" ? [] : [`${line.trim()}.`]))
}

it.each(Object.entries(espeakVoices))("are equal in %s", needs("espeak-ng"), async (language, voice) => {
  const sentences = sentencesIn(language)
  const theirs = debianSymbols(sentences, voice)
  expect(theirs).toHaveLength(200)
  const ours: Array<string> = []
  for (const sentence of sentences) {
    let symbols = ""
    for await (const { phonemes } of espeakFragments(sentence, language, espeak)) symbols += phonemes
    ours.push(symbols.trim())
  }
  expect(ours).toEqual(theirs)
})
