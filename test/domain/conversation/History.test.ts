// The items of a conversation: their order, their bounds, and what an update of the session changes.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { History, maxItems } from "#domain/conversation/History.ts"
import { answerItem, type Item, itemOf } from "#domain/conversation/Items.ts"
import { defaultSettings, type SessionChange, withChange } from "#domain/conversation/Settings.ts"
import { SpokenText } from "#domain/conversation/SpokenText.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"

const item = (id: string, text = "hello"): Item =>
  itemOf({ type: "message", id, role: "user", content: [{ type: "input_text", text }] }, () => "new")

const action = fc.oneof(
  fc.record({
    is: fc.constant("add" as const),
    id: fc.nat(12),
    after: fc.option(fc.nat(12), { nil: undefined }),
  }),
  fc.record({ is: fc.constant("delete" as const), id: fc.nat(12) }),
)

it("stand where they were put, and each has the id of the one before it", () => {
  fc.assert(
    fc.property(fc.array(action, { maxLength: 60 }), (actions) => {
      const history = new History()
      let expected: Array<string> = []
      for (const step of actions) {
        const id = `item_${step.id}`
        const isThere = expected.includes(id)
        if (step.is === "delete") {
          expect(history.delete(id)).toBe(isThere)
          expected = expected.filter((other) => other !== id)
          continue
        }
        const after = step.after === undefined ? undefined : step.after === 0 ? "root" : `item_${step.after}`
        const at = after === undefined ? expected.length : after === "root" ? 0 : expected.indexOf(after) + 1
        const isKnown = after === undefined || after === "root" || expected.includes(after)
        const previous = history.add(item(id), "client", { after })
        if (isThere || !isKnown) {
          expect(previous).toBeInstanceOf(InvalidRequest)
          continue
        }
        expected.splice(at, 0, id)
        expect(previous).toBe(expected[at - 1] ?? null)
        expect(history.before(id)).toBe(previous)
      }
      expect(history.items.map(({ id }) => id)).toEqual(expected)
    }),
  )
})

it("are bounded in number and in memory", () => {
  const history = new History()
  for (let at = 0; at < maxItems; at++)
    expect(history.add(item(`i${at}`), "client")).not.toBeInstanceOf(InvalidRequest)
  expect(history.add(item("more"), "client")).toMatchObject({ field: "item" })
  const long = new History()
  const text = "x".repeat(190_000)
  for (let at = 0; at < 43; at++)
    expect(long.add(item(`i${at}`, text), "client")).not.toBeInstanceOf(InvalidRequest)
  expect(long.add(item("more", text), "client")).toMatchObject({ field: "item" })
  // Deleting gives the space back.
  long.delete("i3")
  expect(long.add(item("more", text), "client")).toBe("i42")
})

it("with as many items as they may be take no answer", () => {
  const history = new History()
  for (let at = 0; at < maxItems; at++) {
    expect(history.overflow).toBeUndefined()
    history.add(item(`i${at}`), "client")
  }
  expect(history.overflow).toMatchObject({ field: "conversation" })
  history.delete("i7")
  expect(history.overflow).toBeUndefined()
})

it("keep the words of an answer that were played, and none of which no audio was sent", () => {
  const history = new History()
  const part = (transcript: string) => [{ type: "output_audio" as const, transcript }]
  const begun = new SpokenText(0)
  history.add(answerItem("a", "in_progress", []), "own", { spoken: begun })
  // Half of its audio was sent when it was cut.
  const { spoken } = begun.begin("one two three four").add(2_000)
  history.replace(answerItem("a", "incomplete", part("one")), spoken.broken(2_000))
  expect(history.truncate("a", 9_000)).toBe(2_000)
  expect(history.item("a")).toMatchObject({ status: "incomplete", content: part("one two") })
  expect(history.truncate("a", 1_000)).toBe(1_000)
  expect(history.item("a")).toMatchObject({ content: part("one") })
  expect(history.truncate("a", 1_500)).toBe(1_000)
  expect(history.truncate("none", 1_000)).toBeUndefined()
})

it("an update changes what it names, null and empty values clear, the rest stays", () => {
  const before = withChange(defaultSettings("fake"), {
    type: "realtime",
    instructions: "Be brief.",
    tools: [{ type: "function", name: "look" }],
    audio: { input: { transcription: { model: "whisper-1" } }, output: { speed: 1.2 } },
  })
  const change = (given: Omit<SessionChange, "type">) => withChange(before, { type: "realtime", ...given })
  expect(change({})).toEqual(before)
  expect(change({ instructions: "", tools: [] })).toEqual({ ...before, instructions: "", tools: [] })
  expect(change({ audio: { input: { transcription: null, turn_detection: null } } })).toEqual({
    ...before,
    transcription: null,
    turns: null,
  })
  expect(change({ audio: { output: { voice: { id: "other" }, pacing: "none" } } })).toEqual({
    ...before,
    voice: "other",
    pacing: "none",
  })
  const semantic = change({
    audio: { input: { turn_detection: { type: "semantic_vad", eagerness: "high" } } },
  })
  expect(semantic.turns).toMatchObject({ kind: "semantic_vad", eagerness: "high", creates: true })
})
