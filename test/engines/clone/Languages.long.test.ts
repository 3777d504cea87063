// Ten languages: how each is read, where eSpeak's dictionaries are installed, and what stands for a sound that the table lacks.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { cloneOnnx } from "#engines/clone/CloneOnnx.ts"
import { inInventory } from "#engines/clone/Inventory.ts"
import { languageCodes } from "#engines/clone/Languages.ts"
import { loadEspeak } from "#engines/kokoro/EspeakLanguages.ts"
import { fromVocabulary, loadSymbols } from "#engines/shared/speech/Symbols.ts"
import { foreignText } from "#engines/shared/text/spoken/SpokenText.ts"
import { onlyWhere } from "../../support/groups/Needs.ts"
import { sentencesIn } from "../kokoro/languageSentences.ts"
import { cloneFiles, openSpeech, say, speechRequest } from "../kokoro/speech.ts"

const espeak = await Effect.runPromise(loadEspeak)
const withEspeak = onlyWhere(
  espeak !== undefined,
  "no eSpeak NG found; npm package @echogarden/espeak-ng-emscripten",
)

/** Language, a sentence, and what its sounds must contain once tidied. */
const sentences: ReadonlyArray<readonly [string, string, string]> = [
  ["fr", "Bonjour, cela coûte 25 euros.", "bɔ̃ʒˈu"],
  ["de", "Guten Tag, das sind 25 Euro.", "ɡˈuːtən"],
  ["es", "Hola, tengo 25 años.", "ˈola"],
  ["it", "Ciao, ho 25 anni.", "tʃˈao"],
  ["pt", "Olá, não há pão.", "olˈa"],
  ["pl", "Cześć, dziękuję bardzo.", "dʑɛŋkˈujɛ"],
  ["ja", "こんにちは、ありがとう。", "onnitɕˈiha"],
  ["ar", "مرحبا، كيف حالك؟", "kˈajfa"],
  ["zh", "你好，我今天很高兴。", "ni"],
]

/** More sounds of some languages. */
const longer: Readonly<Record<string, string>> = {
  ...Object.fromEntries(
    ["fr", "es", "it", "pt"].map((code) => [code, sentencesIn(code).slice(0, 20).join(" ")]),
  ),
  de: "Ich möchte fünf süße Brötchen. Das Mädchen freut sich über den großen Hund.",
  pl: "Chrząszcz brzmi w trzcinie. Będę źle spać, żaba skacze.",
  ar: "ظَهَرَ ضَوْءٌ خَفِيفٌ ثُمَّ غَابَ. القِطُّ الأَسْوَدُ يَنَامُ تَحْتَ الشَّجَرَةِ.",
  ja: "ふじさん、ぎゅうにゅう、らっぱ、しゃしん",
  zh: "女儿学习汉语，去年冬天下雪了。",
}

const language = (code: string) => languageCodes.find((candidate) => candidate.code === code)!

describe("languages", () => {
  it("are the ten of protocol 8.7", () => {
    expect(languageCodes.map(({ code }) => code).sort()).toEqual("ar de en es fr it ja pl pt zh".split(" "))
  })

  it.each(sentences)("%s is read by its own voice", withEspeak, (code, text, sound) => {
    const { voice, tidy } = language(code)
    const ipa = tidy(espeak!.phonemes(foreignText(text).replace(/[.,?!。、，؟،]/gu, " "), voice!))
    expect(ipa.normalize("NFD").replace(/[\u0308\u031e]/gu, "")).toContain(sound.normalize("NFD"))
    expect(ipa).not.toMatch(/[_()\d\n]/)
  })

  it.effect("speak where their dictionaries are, and are refused where they are not", () =>
    Effect.gen(function* () {
      const engine = yield* openSpeech(cloneOnnx, cloneFiles)
      expect(engine.facts.languages).toEqual(
        espeak === undefined ? ["en"] : languageCodes.map(({ code }) => code),
      )
      for (const [code, text] of sentences) {
        const request = speechRequest(text, { voice: { preset: "default" }, language: code })
        if (espeak === undefined) {
          expect(yield* Effect.flip(say(engine, request))).toMatchObject({ field: "language" })
        } else {
          const { samples } = yield* say(engine, request)
          expect(samples.length / 24_000).toBeGreaterThan(0.6)
          // The same text in English gives other audio: the language is used.
          if (/[a-z]/.test(text)) {
            expect((yield* say(engine, { ...request, language: "en" })).samples).not.toEqual(samples)
          }
        }
      }
    }),
  )
})

/** Marks of how another sound is made, which have no symbol. */
const unheard = ["\u0308", "\u031e", "\u032a", "ˤ"]

const table = await Effect.runPromise(loadSymbols(cloneFiles.tokenizer))

describe("sounds", () => {
  it.each(sentences)("of %s all have symbols", withEspeak, (code, text) => {
    const { voice, tidy } = language(code)
    const rich = `${text} ${code in longer ? longer[code] : ""}`
    for (const clause of rich.split(/[.,?!،؟。、]/u)) {
      for (const sound of tidy(espeak!.phonemes(foreignText(clause), voice!)).normalize("NFC")) {
        const symbols = inInventory(sound, table)
        expect([sound, symbols !== "" || unheard.includes(sound)]).toEqual([sound, true])
      }
    }
  })
})

describe("inventory", () => {
  const small = fromVocabulary(Object.fromEntries([..."$abdnoyøʃʒʁɔ\u0303ˈː ɡjɜuɹ"].map((s, id) => [s, id])))

  it("keeps what the table has, and replaces what it lacks by its neighbour", () => {
    expect(inInventory("bɔ̃ʒˈuʁ", small).normalize("NFC")).toBe("bɔ̃ʒˈuʁ".normalize("NFC"))
    expect(inInventory("yø", small)).toBe("yø")
    expect(inInventory("œɲɣʀ", small)).toBe("ɜnjɡɹ")
    expect(inInventory("ä", small)).toBe("a")
  })

  /** Sounds that the table has and lacks, letters with marks, and what is no sound. */
  const sounds = [
    ..."aɡtʃŋɣɲœʁːˈ",
    ..."ħʕʀʏʉʑʐɫɬɱɵɘɞg",
    "a\u0308",
    "o\u0303",
    "ã",
    "ç",
    "ẽ",
    "ˤ",
    "1",
    "漢",
    "_",
  ]

  it("gives symbols of the published table alone", () => {
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom(...sounds) }), (ipa) => {
        for (const symbol of inInventory(ipa, table))
          expect([ipa, symbol, table.has(symbol)]).toEqual([ipa, symbol, true])
      }),
    )
  })
})
