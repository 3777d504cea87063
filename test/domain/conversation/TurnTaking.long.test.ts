// The promises of TurnTaking over many histories, and whether they are promises: each change of the decider that would be a defect must
// break one of them.
import { readFileSync } from "node:fs"
import { stripTypeScriptTypes } from "node:module"
import { describe, expect, it } from "vitest"
import { decide } from "#domain/conversation/TurnTaking.ts"
import { type Decide, liveHistories } from "../../support/conversation/ConversationWorld.ts"

const source = stripTypeScriptTypes(
  readFileSync(new URL("../../../src/domain/conversation/TurnTaking.ts", import.meta.url), "utf8"),
).replace(/^import .*$/gm, "")

const deciderOf = async (code: string): Promise<Decide> =>
  ((await import(`data:text/javascript,${encodeURIComponent(code)}`)) as { decide: Decide }).decide

/** What is changed, and into what. */
const mutations: ReadonlyArray<readonly [from: string, to: string]> = [
  ["if (this.state.rules.interrupts) this.interrupt()", ""],
  ["if (this.state.rules.interrupts) this.interrupt()", "this.interrupt()"],
  ["this.userStirs()\n        if", "if"],
  ["unheard: new Set(this.state.unheard).add(event.itemId), heard", "heard"],
  ["if (this.state.rules.creates && !this.isAnswering)\n", "if (this.state.rules.creates)\n"],
  ["revision: this.state.revision + 1", "revision: this.state.revision"],
  ['this.do({ do: "read ahead", turn: undefined })', ""],
  ["if (answer?.key !== event.key) return\n", ""],
  [", lastSpoken: event.itemId })", " })"],
  ["if (this.state.timer !== event.timer || this.isAnswering) return", "if (this.isAnswering) return"],
  ['this.do({ do: "take silence" })', ""],
  ['this.do({ do: "await no silence" })', ""],
  ['this.do({ do: "report", now: "hears" })', ""],
  ['due: due.filter(({ of }) => of !== "turn") })', "due })"],
  ['due: due.filter(({ of }) => of !== "turn") })', "due: [] })"],
  [
    'this.become({ due: due.filter(({ of }) => of !== "turn") })\n    this.discard()',
    'this.become({ due: due.filter(({ of }) => of !== "turn") })',
  ],
  [
    'this.become({ answer: undefined })\n      this.do({ do: "cancel", key: answer.key, reason: "turn_detected" })',
    "this.become({ answer: undefined })",
  ],
  ['this.do({ do: "keep played", itemId: lastSpoken })', ""],
  ["this.facts.playingMs > 0 && lastSpoken", "lastSpoken"],
  ["if (!rules.creates || this.isAnswering || waiting", "if (this.isAnswering || waiting"],
  [
    "if (!rules.creates || this.isAnswering || waiting >= mostTurnsDue) return",
    "if (!rules.creates || waiting >= mostTurnsDue) return",
  ],
  [
    "if (!rules.creates || this.isAnswering || waiting >= mostTurnsDue) return",
    "if (!rules.creates || this.isAnswering) return",
  ],
  ["if (heard.has(itemId) && isBlank(text)) return this.discard()", ""],
  ["const text = heard.get(itemId)", "const text = undefined"],
  ["unheard.delete(itemId)", ""],
  ["if (isBlank(text)) {\n        this.become({ due: due.toSpliced(at, 1) })", "if (isBlank(text)) {"],
  ["if (isBlank(text)) {", "if (text === undefined) {"],
  ["} else this.become({ due: due.with(at, { ...turn, text }) })", "}"],
  [
    "if (foreseen !== undefined && prepared !== undefined && this.stands(prepared, foreseen, version)) return",
    "",
  ],
  ["|| this.isAnswering || unheard.size > 0)\n      return", "|| unheard.size > 0)\n      return"],
  ["|| this.isAnswering || unheard.size > 0)\n      return", "|| this.isAnswering)\n      return"],
  ["!this.facts.preparedHasFailed &&", "true &&"],
  ["isSame(prepared, turn) &&", "true &&"],
  ["prepared.version === version &&", "true &&"],
  ["prepared.revision === this.state.revision", "true"],
  [
    'this.become({ prepared: undefined })\n    this.do({ do: "discard", key: prepared.key })',
    "this.become({ prepared: undefined })",
  ],
  ["beside.size + waiting.length >= mostBeside", "beside.size >= 100"],
  ["beside.size + waiting.length >= mostBeside", "beside.size >= mostBeside"],
  ["if (first.text === undefined || unheard.size > 0) return", "if (first.text === undefined) return"],
  [
    "if (!this.isAnswering) return this.answerTurn(first, first.text)",
    "return this.answerTurn(first, first.text)",
  ],
  ["if (first.hasFlushed) return\n", ""],
  ['if (this.facts.answer === "draining") {', 'if (this.facts.answer === "writing") {'],
  ['this.do({ do: "refuse", ask: first.ask, why: "answer is active" })', ""],
  ["if (!first.isBeside && answer !== undefined && this.isAnswering) {", "if (false) {"],
  [
    "if (unheard.size > 0) return\n      this.become({ due: others })\n      this.discard()",
    "this.become({ due: others })\n      this.discard()",
  ],
  ["this.become({ due: others })\n      this.discard()", "this.become({ due: others })"],
  ["this.become({ beside: new Map(beside).set(key, first.ask) })", ""],
  ['this.begins(key, undefined, cause)\n    this.do({ do: "release"', 'this.do({ do: "release"'],
  ['this.do({ do: "release", key, cause })', 'this.do({ do: "start", key, cause })'],
  ['if (ask !== undefined) this.do({ do: "carried out", ask })', ""],
  ["if (error === undefined) return this.start(undefined, undefined, answer.cause)", ""],
  ['this.do({ do: "fail", ask: answer.ask, error })', ""],
  ["if (prepared?.key === key) return this.become({ prepared: undefined })", ""],
  ["ms: this.facts.playingMs + rules.idleMs", "ms: rules.idleMs"],
  ["if (rules.idleMs !== null) {", "if (true) {"],
  [
    "if (answer?.key === key) {\n      this.become({ answer: undefined })\n      if (rules",
    "if (answer !== undefined) {\n      this.become({ answer: undefined })\n      if (rules",
  ],
  ['const key = asked === "newest" ? answer?.key : asked', "const key = answer?.key"],
  ['this.do({ do: "cancel", key, reason: "client_cancelled" })', ""],
  ["stops: itemId === lastSpoken", "stops: true"],
  ['return this.do({ do: "flush", key: answer.key })', "return"],
  ["let ask = beside.get(key)", "let ask"],
  [
    'return this.state.answer !== undefined && this.facts.answer !== "over"',
    "return this.state.answer !== undefined",
  ],
  [
    'return this.state.answer !== undefined && this.facts.answer !== "over"',
    'return this.facts.answer === "writing"',
  ],
  [
    'this.noSilence()\n      this.do({ do: "report", now: "answers" })',
    'this.do({ do: "report", now: "answers" })',
  ],
  ["this.begins(key, ask, cause)", "0"],
  ["answer?.itemId === itemId && this.isAnswering", "this.isAnswering"],
]

it("keeps its promises over 100,000 random histories", () => {
  liveHistories(decide, 100_000)
})

describe("a decider that", () => {
  it.each(mutations)("has for %j %j breaks a promise", async (from, to) => {
    const code = source.replace(from, to)
    expect(code, "the mutation changes the decider").not.toBe(source)
    const decider = await deciderOf(code)
    expect(() => liveHistories(decider, 3_000)).toThrow()
  })
})
