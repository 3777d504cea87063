// The promises of TurnTaking over many histories, and whether they are promises: each change of the decider that would be a defect must
// break one of them.
import { describe, expect, it } from "vitest"
import * as turnTaking from "#domain/conversation/TurnTaking.ts"
import { liveHistories, type TurnDecider } from "../../support/conversation/ConversationWorld.ts"
import { type Mutation, mutant } from "../../support/conversation/Mutations.ts"

const decided = mutant<TurnDecider>("domain/conversation/TurnTaking.ts", {})

const mutations: ReadonlyArray<Mutation> = [
  ["if (this.state.rules.interrupts) this.#interrupt()", ""],
  ["if (this.state.rules.interrupts) this.#interrupt()", "this.#interrupt()"],
  ["this.#userStirs()\n        if", "if"],
  ["unheard: new Set(this.state.unheard).add(event.itemId), heard", "heard"],
  ["if (this.state.rules.creates && !this.#isAnswering)\n", "if (this.state.rules.creates)\n"],
  ["revision: this.state.revision + 1", "revision: this.state.revision"],
  ["return this.#readAhead(undefined)", "return"],
  ["if (answer?.key !== event.key) return\n", ""],
  [", lastSpoken: event.itemId })", " })"],
  ["if (this.state.timer !== event.timer || this.#isAnswering) return", "if (this.#isAnswering) return"],
  ['this.#do({ do: "take silence" })', ""],
  ['this.#do({ do: "await no silence" })', ""],
  ['this.#do({ do: "report", now: "hears" })', ""],
  ['due: due.filter(({ of }) => of !== "turn") })', "due })"],
  ['due: due.filter(({ of }) => of !== "turn") })', "due: [] })"],
  [
    'this.#become({ due: due.filter(({ of }) => of !== "turn") })\n    this.#discard()',
    'this.#become({ due: due.filter(({ of }) => of !== "turn") })',
  ],
  [
    'this.#become({ answer: undefined })\n      this.#do({ do: "cancel", key: answer.key, reason: "turn_detected" })',
    "this.#become({ answer: undefined })",
  ],
  ['this.#do({ do: "keep played", itemId: lastSpoken })', ""],
  ["this.#facts.playingMs > 0 && lastSpoken", "lastSpoken"],
  ["if (!rules.creates || this.#isAnswering || waiting", "if (this.#isAnswering || waiting"],
  [
    "if (!rules.creates || this.#isAnswering || waiting >= mostTurnsDue) return",
    "if (!rules.creates || waiting >= mostTurnsDue) return",
  ],
  [
    "if (!rules.creates || this.#isAnswering || waiting >= mostTurnsDue) return",
    "if (!rules.creates || this.#isAnswering) return",
  ],
  ["if (heard.has(itemId) && isBlank(text)) return this.#discard()", ""],
  ["const text = heard.get(itemId)", "const text = undefined"],
  ["unheard.delete(itemId)", ""],
  ["if (isBlank(text)) {\n        this.#become({ due: due.toSpliced(at, 1) })", "if (isBlank(text)) {"],
  ["if (isBlank(text)) {", "if (text === undefined) {"],
  ["} else this.#become({ due: due.with(at, { ...turn, text }) })", "}"],
  [
    "if (foreseen !== undefined && prepared !== undefined && this.#stands(prepared, foreseen, version)) return",
    "",
  ],
  ["|| this.#isAnswering || unheard.size > 0)\n      return", "|| unheard.size > 0)\n      return"],
  ["|| this.#isAnswering || unheard.size > 0)\n      return", "|| this.#isAnswering)\n      return"],
  ["!this.#facts.preparedHasFailed &&", "true &&"],
  ["isSame(prepared, turn) &&", "true &&"],
  ["prepared.version === version &&", "true &&"],
  ["prepared.revision === this.state.revision", "true"],
  [
    'this.#become({ prepared: undefined })\n    this.#do({ do: "discard", key: prepared.key })',
    "this.#become({ prepared: undefined })",
  ],
  ["beside.size + waiting.length >= mostBeside", "beside.size >= 100"],
  ["beside.size + waiting.length >= mostBeside", "beside.size >= mostBeside"],
  ["if (first.text === undefined || unheard.size > 0) return", "if (first.text === undefined) return"],
  [
    "if (!this.#isAnswering && this.#answerTurn(first, first.text)) return",
    "if (this.#answerTurn(first, first.text)) return",
  ],
  ["if (first.hasFlushed) return\n", ""],
  ['if (this.#facts.answer === "draining") {', 'if (this.#facts.answer === "writing") {'],
  ['this.#do({ do: "refuse", ask: first.ask, why: "answer is active" })', ""],
  ["if (!first.isBeside && answer !== undefined && this.#isAnswering) {", "if (false) {"],
  [
    "if (unheard.size > 0) return\n      this.#become({ due: others })\n      this.#discard()",
    "this.#become({ due: others })\n      this.#discard()",
  ],
  ["this.#become({ due: others })\n      this.#discard()", "this.#become({ due: others })"],
  ["this.#become({ beside: new Map(beside).set(key, first.ask) })", ""],
  ['this.#begins(key, undefined, cause)\n    this.#do({ do: "release"', 'this.#do({ do: "release"'],
  ['this.#do({ do: "release", key, cause })', 'this.#do({ do: "start", key, cause })'],
  ['if (ask !== undefined) this.#do({ do: "carried out", ask })', ""],
  ["if (why === undefined) return this.#start(undefined, undefined, answer.cause)", ""],
  ['this.#do({ do: "fail", ask: answer.ask, error: why })', ""],
  ["if (prepared?.key === key) return this.#become({ prepared: undefined })", ""],
  ["ms: this.#facts.playingMs + rules.idleMs", "ms: rules.idleMs"],
  ["if (rules.idleMs !== null) {", "if (true) {"],
  [
    "if (answer?.key === key) {\n      this.#become({ answer: undefined })\n      if (rules",
    "if (answer !== undefined) {\n      this.#become({ answer: undefined })\n      if (rules",
  ],
  ['const key = asked === "newest" ? answer?.key : asked', "const key = answer?.key"],
  ['this.#do({ do: "cancel", key, reason: "client_cancelled" })', ""],
  ["stops: itemId === lastSpoken", "stops: true"],
  ['return this.#do({ do: "flush", key: answer.key })', "return"],
  ["let ask = beside.get(key)", "let ask"],
  [
    'return this.state.answer !== undefined && this.#facts.answer !== "over"',
    "return this.state.answer !== undefined",
  ],
  [
    'return this.state.answer !== undefined && this.#facts.answer !== "over"',
    'return this.#facts.answer === "writing"',
  ],
  [
    'this.#noSilence()\n      this.#do({ do: "report", now: "answers" })',
    'this.#do({ do: "report", now: "answers" })',
  ],
  ["this.#begins(key, ask, cause)", "0"],
  ["if (this.#facts.overflow !== undefined) return", ""],
  ["if (this.#isFull(first.ask)) continue", ""],
  ["if (this.#isFull(undefined)) return false", ""],
  ["if (this.#isFull(undefined)) return false", "if (this.#isFull(undefined)) return true"],
  ["const why = error ?? this.#facts.overflow", "const why = error"],
  ["if (!this.#isFull(undefined)) this.#start", "this.#start"],
  ["if (left < 1) return", ""],
  ["this.#become({ leftReads: left - 1, readAtMs: nowMs })", ""],
  ["Math.min(readAheads.burst, leftReads + ((nowMs - readAtMs) / 1000) * readAheads.perSecond)", "leftReads"],
  ["answer?.itemId === itemId && this.#isAnswering", "this.#isAnswering"],
]

it("keeps its promises over 100,000 random histories", () => {
  liveHistories(turnTaking, 100_000)
})

describe("a decider that", () => {
  it("is unchanged breaks none", () => {
    liveHistories(decided(), 3_000)
  })

  it.each(mutations)("has for %j %j breaks a promise", (...mutation) => {
    const changed = decided(mutation)
    expect(() => liveHistories(changed, 3_000)).toThrow()
  })
})
