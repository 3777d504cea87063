// Removing punctuation: what goes, what stays, and that a text in parts gives what the whole text gives.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import {
  hasPunctuation,
  noText,
  removePunctuation,
  withoutPunctuation,
} from "#domain/language/Punctuation.ts"

describe("withoutPunctuation", () => {
  it.each([
    ["Hello, world!", "Hello world"],
    [" Let's meet at the well-known place.", " Let's meet at the well-known place"],
    ["'quoted' rock 'n' roll", "quoted rock n roll"],
    ["It costs 3.50, or 1,000: 50%.", "It costs 3.50 or 1,000 50%"],
    ["Minus -5 at 10:30; pages 3–7 — all of them…", "Minus -5 at 10:30 pages 3–7 all of them"],
    ["$5, €6 & £7 (a/b) #1 *", "$5 €6 & £7 a/b #1 *"],
    ["Write to jane.doe@example.com. Or to U.S. staff.", "Write to jane.doe@example.com Or to U.S staff"],
    ["The end.Next", "The end Next"],
    ["...", ""],
    ["No marks  at all", "No marks  at all"],
    ["“Er sagte: »Ja!«”", "Er sagte Ja"],
    ["§ 5, Absatz 3", "§ 5 Absatz 3"],
    ["« Bonjour ! » l’homme dit-il", "Bonjour l’homme dit-il"],
    ["Un po' d'acqua, per favore.", "Un po d'acqua per favore"],
    ["¿Cómo estás? ¡Bien!", "Cómo estás Bien"],
    ["Olá, tudo bem? Guarda-chuva.", "Olá tudo bem Guarda-chuva"],
    ["Τι κάνεις; Καλά· ευχαριστώ.", "Τι κάνεις Καλά ευχαριστώ"],
    ["’s Avonds, foto's en e-mails.", "s Avonds foto's en e-mails"],
    ["„Dzień dobry”, powiedział.", "Dzień dobry powiedział"],
    ["你好，世界。阿尔伯特·爱因斯坦！", "你好 世界 阿尔伯特·爱因斯坦"],
    ["こんにちは、「世界」。", "こんにちは 世界"],
    ["안녕하세요, 세계!", "안녕하세요 세계"],
    ["Xin chào, thế giới!", "Xin chào thế giới"],
    ["مرحبا، كيف حالك؟ ٣٫٥٪؛ نعم۔", "مرحبا كيف حالك ٣٫٥٪ نعم"],
    ["Col·legi, 👩‍👩‍👧‍👦! 3′ 5″", "Col·legi 👩‍👩‍👧‍👦 3′ 5″"],
  ])("%j → %j", (text, expected) => expect(withoutPunctuation(text)).toBe(expected))

  const mark = fc.constantFrom(...".,;:!?…-–—'’\"“”«»()[]{}_·¿¡。，、？！；：「」（）؟،؛۔;/%&@#*$€")
  const piece = fc.oneof(
    mark,
    fc.constantFrom(" ", "  ", "\n", "\u00a0"),
    fc.string({ unit: "grapheme", maxLength: 2 }),
    fc.nat(99).map(String),
  )
  const text = fc.array(piece, { maxLength: 40 }).map((list) => list.join(""))
  const lettersOf = (value: string) => value.replaceAll(/[^\p{L}\p{M}\p{N}\p{S}]/gu, "")

  it("never touches letters, digits, signs of currency, emoji", () => {
    fc.assert(
      fc.property(text, (value) => {
        expect(lettersOf(withoutPunctuation(value))).toBe(lettersOf(value))
      }),
    )
  })

  it("is done in one pass, and a text without marks stays as it is", () => {
    fc.assert(
      fc.property(text, (value) => {
        const once = withoutPunctuation(value)
        expect(withoutPunctuation(once)).toBe(once)
        expect(hasPunctuation(once)).toBe(false)
        if (!/\p{P}/u.test(value)) expect(once).toBe(value.trimEnd())
      }),
      { numRuns: 1000 },
    )
  })

  it("a text in parts gives what the whole text gives", () => {
    fc.assert(
      fc.property(fc.array(text, { maxLength: 8 }), (parts) => {
        let state = noText
        let out = ""
        for (const part of parts) {
          const [shown, next] = removePunctuation(state, part)
          out += shown
          state = next
        }
        expect(out).toBe(withoutPunctuation(parts.join("")))
      }),
      { numRuns: 1000 },
    )
  })

  it("holds a bounded part of an endless run of marks", () => {
    let state = noText
    for (let i = 0; i < 1_000; i++) state = removePunctuation(state, " ... ")[1]
    expect(state.pending.length).toBeLessThan(100)
    expect(removePunctuation(state, "a")[0]).toBe(" a")
  })
})
