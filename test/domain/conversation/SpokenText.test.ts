// Which words of a spoken answer were heard: whole words from its beginning, more of them with more audio, all with all of it.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { SpokenText } from "#domain/conversation/SpokenText.ts"

/** The newest record, to which the tests add. */
class Speaking {
  #record = new SpokenText(0)
  begin(text: string) {
    this.#record = this.#record.begin(text)
  }
  #added({ captions, spoken }: ReturnType<SpokenText["rest"]>) {
    this.#record = spoken
    return captions
  }
  add(...audio: Parameters<SpokenText["add"]>) {
    return this.#added(this.#record.add(...audio))
  }
  rest() {
    return this.#added(this.#record.rest())
  }
  heard(samples: number) {
    return this.#record.heard(samples)
  }
  get text() {
    return this.#record.text
  }
  get samples() {
    return this.#record.samples
  }
}

const word = fc.stringMatching(/^[a-z]{1,9}[.,]?$/)
const piece = fc.record({
  words: fc.array(word, { minLength: 1, maxLength: 8 }),
  samples: fc.integer({ min: 1, max: 50_000 }),
})

const spokenOf = (pieces: ReadonlyArray<{ words: ReadonlyArray<string>; samples: number }>): Speaking => {
  const spoken = new Speaking()
  for (const { samples, words } of pieces) {
    spoken.begin(`${words.join(" ")} `)
    spoken.add(samples)
  }
  return spoken
}

it("are words from the beginning, never fewer with more audio, and never a word of which less than half was played", () => {
  fc.assert(
    fc.property(
      fc.array(piece, { minLength: 1, maxLength: 6 }),
      fc.array(fc.double({ min: 0, max: 1, noNaN: true })),
      (pieces, shares) => {
        const spoken = spokenOf(pieces)
        let before = ""
        for (const share of [...shares].sort((a, b) => a - b)) {
          const heard = spoken.heard(spoken.samples * share)
          expect(spoken.text.startsWith(heard)).toBe(true)
          expect(heard.startsWith(before)).toBe(true)
          // Cut between words.
          expect(heard === "" || /^\s|^$/.test(spoken.text.slice(heard.length)) || heard.endsWith(" ")).toBe(
            true,
          )
          before = heard
        }
        expect(spoken.heard(spoken.samples)).toBe(spoken.text)
        expect(spoken.heard(0)).toBe("")
      },
    ),
  )
})

it("places a word by its share of the characters of its piece", () => {
  const spoken = new Speaking()
  spoken.begin("one two ")
  spoken.add(8_000)
  spoken.begin("three four")
  spoken.add(10_000)
  expect(spoken.heard(1_000)).toBe("")
  expect(spoken.heard(2_000)).toBe("one")
  expect(spoken.heard(8_000)).toBe("one two ")
  expect(spoken.heard(11_000)).toBe("one two three")
  expect(spoken.heard(15_000)).toBe("one two three")
  expect(spoken.heard(17_600)).toBe("one two three four")
})

it("counts a piece of which not all is spoken by the audio that it has", () => {
  const spoken = new SpokenText(0).begin("one two").add(7_000).spoken.broken()
  expect(spoken.heard(7_000)).toBe("one two")
  expect(spoken.heard(3_500)).toBe("one")
})

it("places words where the voice says that they are, and tells each with its time", () => {
  const spoken = new Speaking()
  spoken.begin("It costs $25, today. ")
  const told = [
    ...spoken.add(2_400, [
      { text: "It", start: 100, end: 2_000 },
      { text: "costs", start: 2_000, end: 9_000 },
      { text: "twenty", start: 9_000, end: 14_000 },
    ]),
    ...spoken.add(17_600),
    ...spoken.add(20_000, [
      { text: "five", start: 20_000, end: 23_000 },
      { text: "dollars", start: 23_000, end: 27_000 },
      { text: "today", start: 30_000, end: 38_000 },
    ]),
    ...spoken.rest(),
  ]
  spoken.begin("Yes. ")
  told.push(...spoken.add(10_000, [{ text: "Yes", start: 1_000, end: 9_000 }]), ...spoken.rest())
  expect(told).toEqual([
    { text: "It ", start: 100 },
    { text: "costs ", start: 2_000 },
    { text: "$25, ", start: 9_000 },
    { text: "today. ", start: 30_000 },
    { text: "Yes. ", start: 41_000 },
  ])
  expect(spoken.heard(1_000)).toBe("")
  expect(spoken.heard(1_050)).toBe("It")
  expect(spoken.heard(5_500)).toBe("It costs")
  expect(spoken.heard(17_999)).toBe("It costs")
  expect(spoken.heard(18_000)).toBe("It costs $25,")
  expect(spoken.heard(39_999)).toBe("It costs $25, today.")
  expect(spoken.heard(50_000)).toBe(spoken.text)
})

it("tells a piece at once where the voice tells no times, and what it never tells at its end", () => {
  const spoken = new Speaking()
  spoken.begin("One two. ")
  expect(spoken.add(1_000)).toEqual([{ text: "One two. ", start: 0 }])
  expect(spoken.add(1_000)).toEqual([])
  expect(spoken.rest()).toEqual([])
  spoken.begin("Three four. ")
  expect(spoken.add(1_000, [{ text: "three", start: 10, end: 900 }])).toEqual([
    { text: "Three ", start: 2_010 },
  ])
  expect(spoken.rest()).toEqual([{ text: "four. ", start: 3_000 }])
})
