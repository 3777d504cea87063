// The promises of AnswerGiving over many histories, and whether they are promises: each change of the decider that would be a defect must
// break one of them.
import { describe, expect, it } from "vitest"
import { samplesToMs, secondsToSamples, speechRateHz } from "#domain/audio/Audio.ts"
import * as answerGiving from "#domain/conversation/AnswerGiving.ts"
import { answerUsage, noCounts } from "#domain/conversation/Answers.ts"
import { Clauses } from "#domain/conversation/Clauses.ts"
import { answerItem, callItem } from "#domain/conversation/Items.ts"
import { SpokenText } from "#domain/conversation/SpokenText.ts"
import { type AnswerDecider, liveAnswers } from "../../support/conversation/AnswerWorld.ts"
import { type Mutation, mutant } from "../../support/conversation/Mutations.ts"

const decided = mutant<AnswerDecider>("domain/conversation/AnswerGiving.ts", {
  speechRateHz,
  samplesToMs,
  secondsToSamples,
  answerUsage,
  noCounts,
  Clauses,
  answerItem,
  callItem,
  SpokenText,
})

const mutations: ReadonlyArray<Mutation> = [
  ['if (this.state.life === "over") return', ""],
  ['if (this.state.life === "given") this.#tellCreated()', "this.#tellCreated()"],
  ['if (this.state.life === "given") this.#tellCreated()', ""],
  ["this.#counted(event.outputTokens)\n        if", "if"],
  ["this.#counted(event.outputTokens)\n        return", "return"],
  ['this.#pieceMade("whole")', ""],
  ["this.#become({ isCalled: false })", ""],
  ["this.#become({ isAwaiting: false })", ""],
  ["this.#become({ isPaced: false, isAwaiting: false })", "this.#become({ isPaced: false })"],
  ["this.#become({ isPaced: false, isAwaiting: false })", "this.#become({ isAwaiting: false })"],
  ['life: "given", isReleased: true, unsent: []', 'life: "given", unsent: []'],
  ['life: "given", isReleased: true, unsent: [] })', 'life: "given", isReleased: true })'],
  ["this.#tellCreated()\n    for", "for"],
  ["for (const written of unsent) this.#take(written)", ""],
  ["if (this.state.written !== undefined) this.#endCalls()", ""],
  ['if (!this.state.hasText && written.text.trim() === "") return', ""],
  ["this.#cutIntoPieces(written.text)", ""],
  ['if (this.state.life === "held") this.#become', "if (false) this.#become"],
  ["else this.#take(written)", ""],
  [
    "if (!this.state.terms.speaks || this.state.failure !== undefined) return",
    "if (!this.state.terms.speaks) return",
  ],
  [
    "if (!this.state.terms.speaks || this.state.failure !== undefined) return",
    "if (this.state.failure !== undefined) return",
  ],
  ["texts: [...this.state.texts, ...pieces]", "texts: pieces"],
  ['if (this.state.model !== "runs") return', ""],
  ["this.state.message ?? this.#beginMessage()", "this.#beginMessage()"],
  ["text: message.text + written.text", "text: written.text"],
  ["if (!this.state.terms.speaks)\n          this.#send", "this.#send"],
  ['if (call === undefined || written.text === "") return', "if (call === undefined) return"],
  ["arguments: call.arguments + written.text", "arguments: written.text"],
  ["(one === call ? longer : one)", "one"],
  ["new SpokenText(this.#facts.sentSamples)", "new SpokenText(0)"],
  [
    'if (speaks && !isBeside) this.#do({ do: "message began", itemId: id })',
    'this.#do({ do: "message began", itemId: id })',
  ],
  ["speaks ? message.spoken : undefined)", "undefined)"],
  [
    'this.#send({ type: "response.content_part.added"',
    'if (speaks) this.#send({ type: "response.content_part.added"',
  ],
  ["this.#become({ calls: [...this.state.calls, begun] })", ""],
  ['written: isCut ? "cut" : "whole"', 'written: "whole"'],
  ["texts: hasRest ? [...texts, clauses.rest] : texts", "texts"],
  ["this.#endCalls()\n    this.#goOn()\n  }\n\n  /** The calls", "this.#goOn()\n  }\n\n  /** The calls"],
  ["this.#become({ calls: [] })", ""],
  ['call.arguments.trim() === "" ? "{}" : call.arguments', "call.arguments"],
  ["this.#resumeModel()\n    const piece", "const piece"],
  ["this.#resumeModel()\n    const { isSpeaking", "const { isSpeaking"],
  ["chunks: [...piece.chunks, { samples, words }]", "chunks: [{ samples, words }]"],
  ["waitingSamples: this.state.waitingSamples + samples.length", "waitingSamples: samples.length"],
  ["this.#become({ isSpeaking: false, pieces", "this.#become({ pieces"],
  ['if (this.state.message === undefined) return this.#end("failed", { type: "failed", error })', ""],
  ['this.#pieceMade("broken")', 'this.#pieceMade("whole")'],
  ["this.#become({ failure: error, texts: [] })", "this.#become({ texts: [] })"],
  ["this.#become({ failure: error, texts: [] })", "this.#become({ failure: error })"],
  ['if (life !== "given" || pieces', "if (pieces"],
  ["|| pieces.length > 0 || texts.length > 0) return", "|| texts.length > 0) return"],
  ['if (written === "cut") this.#end', "if (false) this.#end"],
  [
    "if (text === undefined || isSpeaking || failure !== undefined) return",
    "if (text === undefined || failure !== undefined) return",
  ],
  [
    "if (message === undefined ? nextPiece > 0 : waitingSamples > mostWaiting) return",
    "if (waitingSamples > mostWaiting) return",
  ],
  [
    "if (message === undefined ? nextPiece > 0 : waitingSamples > mostWaiting) return",
    "if (message === undefined && nextPiece > 0) return",
  ],
  ["nextPiece: nextPiece + 1", "nextPiece"],
  ["!hasNext || isAwaiting || isCalled) return", "!hasNext || isAwaiting) return"],
  ["!hasNext || isAwaiting || isCalled) return", "!hasNext || isCalled) return"],
  ["this.#become({ isCalled: false })\n        this.#sendNext()", "this.#become({ isCalled: false })"],
  ["this.#become({ isCalled: true })", ""],
  ['if (piece.made === "not yet") return', ""],
  ["if (hasBegun) this.#become({ message: { ...message, spoken: message.spoken.broken() } })", ""],
  ["const begun = hasBegun ? message.spoken : message.spoken.begin(text)", "const begun = message.spoken"],
  [
    "const { captions, spoken } = begun.rest()\n    this.#become({ message: { ...message, spoken } })\n    this.#tellCaptions(message, captions)",
    "const { spoken } = begun.rest()\n    this.#become({ message: { ...message, spoken } })",
  ],
  ["const ms = isPaced ? this.#facts.playedUntilMs - leadMs - this.#facts.nowMs : 0", "const ms = 0"],
  [
    "this.#facts.playedUntilMs - leadMs - this.#facts.nowMs",
    "this.#facts.playedUntilMs - this.#facts.nowMs - 2 * leadMs",
  ],
  ["chunk.samples.subarray(0, eventSamples)", "chunk.samples"],
  ["left.length === 0 ? later : [{ samples: left, words: [] }, ...later]", "later"],
  ["{ ...piece, chunks, hasBegun: true }", "{ ...piece, chunks }"],
  ["waitingSamples: waitingSamples - samples.length", "waitingSamples"],
  ["begun.add(samples.length, chunk.words)", "begun.add(samples.length)"],
  ['this.#do({ do: "play", samples })', ""],
  ['this.#do({ do: "play", samples })', 'this.#do({ do: "play", samples: chunk.samples })'],
  ['{ do: "send audio", piece: piece.number,', '{ do: "send audio", piece: piece.number - 1,'],
  ["this.#become({ output: [...this.state.output, item] })", ""],
  ['if (!isBeside) this.#do({ do: "join", item, spoken })', 'this.#do({ do: "join", item, spoken })'],
  ['if (!isBeside) this.#do({ do: "join", item, spoken })', ""],
  ['if (!isBeside) this.#do({ do: "complete", item, spoken })', ""],
  ["this.#become({ output: this.state.output.with(index, item) })", ""],
  ['status === "completed" ? "completed" : "incomplete"', '"completed"'],
  ["message.spoken.broken(unsent) : message.spoken", "message.spoken : message.spoken"],
  ["message.spoken.broken(unsent) : message.spoken", "message.spoken.broken() : message.spoken"],
  ["this.#facts.playedSamples - spoken.startsAt", "this.#facts.playedSamples"],
  ['spoken.heard(status === "cancelled" ? played : spoken.samples)', "spoken.heard(spoken.samples)"],
  ['spoken.heard(status === "cancelled" ? played : spoken.samples)', "spoken.text"],
  ['this.#do({ do: "stop" })', ""],
  ['if (life === "given") {\n      if', "if (true) {\n      if"],
  [
    'if (details?.type === "cancelled" && details.reason === "turn_detected")\n        this.#do({ do: "play no more" })',
    "",
  ],
  ["if (message !== undefined) this.#endMessage(message, status)", ""],
  [
    'for (const call of calls) this.#endItem(call.index, callItem(call.id, "incomplete", call), undefined)',
    "",
  ],
  ['this.#send({ type: "response.done", response: this.#object(status, details) })', ""],
  ['this.#do({ do: "account", status, counts: this.#counts })', ""],
  ['this.#do({ do: "end" })', ""],
  ["isReleased && counts.outputTokens > 0", "counts.outputTokens > 0"],
  ["isReleased && counts.outputTokens > 0", "isReleased"],
  ["samplesToMs(this.state.message?.spoken.samples ?? 0, speechRateHz)", "0"],
]

it("keeps its promises over 100,000 random histories", () => {
  liveAnswers(answerGiving, 100_000)
})

describe("a decider that", () => {
  it("is unchanged breaks none", () => {
    liveAnswers(decided(), 3_000)
  })

  it.each(mutations)("has for %j %j breaks a promise", (...mutation) => {
    const changed = decided(mutation)
    expect(() => liveAnswers(changed, 3_000)).toThrow()
  })
})
