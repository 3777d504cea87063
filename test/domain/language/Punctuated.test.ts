// Adding punctuation by this project's small rules, language by language; removing it; leaving a model's own alone.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { nothingPunctuated, punctuated, punctuationProblem } from "#domain/language/Punctuated.ts"
import { withoutPunctuation } from "#domain/language/Punctuation.ts"
import { punctuatedLanguages } from "#domain/language/SentenceRules.ts"

const add = (language: string, ...texts: ReadonlyArray<string>) =>
  punctuated(true, language, texts, nothingPunctuated)[0]

describe("added punctuation", () => {
  it.each([
    ["en", " it is late", " It is late."],
    ["en", " where is the station", " Where is the station?"],
    ["en", " what time is it", " What time is it?"],
    ["en", " do you hear me", " Do you hear me?"],
    ["en", " isn't it late", " Isn't it late?"],
    ["en", " when i was young i sang", " When i was young i sang."],
    ["en", " whatever you say", " Whatever you say."],
    ["de", " wie geht es dir", " Wie geht es dir?"],
    ["de", " können sie mir helfen", " Können sie mir helfen?"],
    ["de", " wie gesagt es regnet", " Wie gesagt es regnet."],
    ["de", " über uns", " Über uns."],
    ["fr", " est-ce que tu viens", " Est-ce que tu viens?"],
    ["fr", " qu'est-ce que c'est", " Qu'est-ce que c'est?"],
    ["fr", " avez-vous faim", " Avez-vous faim?"],
    ["fr", " rendez-vous demain", " Rendez-vous demain."],
    ["it", " dov'è la stazione", " Dov'è la stazione?"],
    ["it", " chiaro e tondo", " Chiaro e tondo."],
    ["es", " cómo estás", " ¿Cómo estás?"],
    ["es", " como siempre", " Como siempre."],
    ["pt", " por que não", " Por que não?"],
    ["pt", " bom dia", " Bom dia."],
    ["el", " πού είναι ο σταθμός", " Πού είναι ο σταθμός;"],
    ["el", " που\u0301 πας", " Που\u0301 πας;"],
    ["el", " καλημέρα", " Καλημέρα."],
    ["nl", " ijs is koud", " IJs is koud."],
    ["nl", " heb je tijd", " Heb je tijd?"],
    ["pl", " czy to prawda", " Czy to prawda?"],
    ["pl", " dzień dobry", " Dzień dobry."],
    ["zh", "你好吗", "你好吗？"],
    ["zh", "今天天气很好", "今天天气很好。"],
    ["ja", "元気ですか", "元気ですか？"],
    ["ja", "いい天気です", "いい天気です。"],
    ["ko", " 안녕하십니까", " 안녕하십니까?"],
    ["ko", " 비가 옵니다", " 비가 옵니다."],
    ["vi", " bạn có khỏe không", " Bạn có khỏe không?"],
    ["vi", " trời đẹp", " Trời đẹp."],
    ["ar", " أين المحطة", " أين المحطة؟"],
    ["ar", " صباح الخير", " صباح الخير."],
  ])("%s: %j → %j", (language, text, expected) => expect(add(language, text)).toEqual([expected]))

  it("is known for the fourteen languages of the multilingual model", () => {
    expect(punctuatedLanguages.join(" ")).toBe("ar de el en es fr it ja ko nl pl pt vi zh")
    expect(punctuationProblem(true, "ru")).toBe(
      "cannot be added in ru; it can in ar, de, el, en, es, fr, it, ja, ko, nl, pl, pt, vi, zh",
    )
    for (const [choice, language] of [
      [false, "ru"],
      [undefined, "ru"],
      [true, undefined],
      [true, "en"],
    ] as const) {
      expect(punctuationProblem(choice, language)).toBeUndefined()
    }
  })

  it("each segment is a sentence, but not where the next goes on inside a word", () => {
    expect(add("en", " one", " two")).toEqual([" One.", " Two."])
    expect(add("en", " one", "self", " two")).toEqual([" One", "self.", " Two."])
    expect(add("zh", "一", "二")).toEqual(["一。", "二。"])
    expect(add("en", " ♪", " 5 men")).toEqual([" ♪", " 5 men."])
  })

  it("adds nothing from the first mark of the model on", () => {
    expect(add("en", " the fox", " jumps.")).toEqual([" the fox", " jumps."])
    const [first, state] = punctuated(true, "en", [" the fox"], nothingPunctuated)
    expect(first).toEqual([" The fox."])
    const [second, later] = punctuated(true, "en", [" jumps, and"], state)
    expect(second).toEqual([" jumps, and"])
    expect(punctuated(true, "en", [" runs"], later)[0]).toEqual([" runs"])
  })
})

const language = fc.constantFrom(...punctuatedLanguages)
const word = fc.oneof(
  fc.stringMatching(/^[a-zéßλжか你한ش0-9']{1,6}$/u),
  fc.constantFrom("what", "is", "ij", "ﬁn", "3.5"),
)
const segments = fc.array(
  fc.array(word, { minLength: 1, maxLength: 5 }).map((list) => ` ${list.join(" ")}`),
  { maxLength: 6 },
)
const withMarks = fc
  .array(
    fc
      .tuple(segments, fc.constantFrom(",", ".", "?", "。", "؟", "!"))
      .map(([list, mark]) => list.map((text) => text + mark)),
    { maxLength: 3 },
  )
  .map((list) => list.flat())

describe("properties", () => {
  it("adding then removing is removing, capitals aside", () => {
    fc.assert(
      fc.property(language, segments, (code, texts) => {
        const added = withoutPunctuation(add(code, ...texts).join(""))
        expect(added.toLowerCase()).toBe(withoutPunctuation(texts.join("")).toLowerCase())
      }),
      { numRuns: 500 },
    )
  })

  it("a text with marks is left alone; added marks are not added to", () => {
    fc.assert(
      fc.property(language, segments, withMarks, (code, plain, marked) => {
        if (marked.length > 0) expect(add(code, ...marked)).toEqual(marked)
        const once = add(code, ...plain)
        if (once.join("").trim() !== "") expect(add(code, ...once)).toEqual(once)
      }),
    )
  })

  it("removing does not depend on how the text was cut into pieces", () => {
    fc.assert(
      fc.property(withMarks, fc.nat(10), (texts, cut) => {
        const [first, state] = punctuated(false, "en", texts.slice(0, cut), nothingPunctuated)
        const [rest] = punctuated(false, "en", texts.slice(cut), state)
        expect([...first, ...rest]).toEqual(punctuated(false, "en", texts, nothingPunctuated)[0])
        expect([...first, ...rest].join("")).toBe(withoutPunctuation(texts.join("")))
      }),
    )
  })
})
