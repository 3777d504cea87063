// The promises of Listening over many histories, and whether they are promises: each change of the decider that would be a defect must
// break one of them.
import { describe, expect, it } from "vitest"
import { listenRateHz, msToSamples } from "#domain/audio/Audio.ts"
import * as listening from "#domain/audio/Listening.ts"
import { PreviewPlan, unheardMs } from "#domain/audio/PreviewPlan.ts"
import { type ListeningDecider, liveListening } from "../../support/audio/ListeningWorld.ts"
import { type Mutation, mutant } from "../../support/conversation/Mutations.ts"

const decided = mutant<ListeningDecider>("domain/audio/Listening.ts", {
  listenRateHz,
  msToSamples,
  PreviewPlan,
  unheardMs,
})

const mutations: ReadonlyArray<Mutation> = [
  ['if (this.state.life === "over") return', ""],
  [
    'this.#become({ life: "works" })\n        return this.#next()',
    'this.#become({ life: "works" })\n        return',
  ],
  ["this.#become({ isDue: true })", ""],
  ['if (event.ms >= idleMs) this.#ended("idle")', ""],
  ['if (event.ms >= idleMs) this.#ended("idle")', 'this.#ended("idle")'],
  ["this.#become({ isClosingBeside: false })\n        return this.#next()", "return this.#next()"],
  [
    "this.#become({ isClosingBeside: false })\n        return this.#next()",
    "return this.#become({ isClosingBeside: false })",
  ],
  ['this.#do({ do: "show", as: "final", transcript: event.transcript })', ""],
  ['return this.#become({ life: "over", work: undefined })', "return this.#become({ work: undefined })"],
  ['end: this.state.end ?? "stop"', "end: this.state.end"],
  ['if (end !== undefined || life !== "works") return', 'if (life !== "works") return'],
  ["this.#become({ endsAtMs: pause.endsAtMs })", ""],
  [
    "if (silence !== undefined || !plan.isDue(pause, lately)) return",
    "if (!plan.isDue(pause, lately)) return",
  ],
  ["if (silence !== undefined || !plan.isDue(pause, lately)) return", "if (silence !== undefined) return"],
  ["this.#become({ silence: pause })\n", "\n"],
  ['if (this.state.work === "caption") this.#interrupt()\n    this.#next()', "this.#next()"],
  [
    'if (this.state.work === "caption") this.#interrupt()\n    this.#next()',
    'if (this.state.work === "caption") this.#interrupt()',
  ],
  [
    "{ plan: new PreviewPlan(), previewed: undefined, silence: undefined }",
    "{ previewed: undefined, silence: undefined }",
  ],
  [
    "{ plan: new PreviewPlan(), previewed: undefined, silence: undefined }",
    "{ plan: new PreviewPlan(), silence: undefined }",
  ],
  [
    "{ plan: new PreviewPlan(), previewed: undefined, silence: undefined }",
    "{ plan: new PreviewPlan(), previewed: undefined }",
  ],
  ["if (silence !== undefined && previewing !== undefined) this.#interrupt()", ""],
  ["if (end !== undefined) return\n    this.#become({ end: why })", "this.#become({ end: why })"],
  ["previewing !== undefined && previewing.until !== this.#facts.samples", "previewing !== undefined"],
  ['if (work === "caption" || isLate) this.#interrupt()', 'if (work === "caption") this.#interrupt()'],
  ['if (work === "caption" || isLate) this.#interrupt()', "if (isLate) this.#interrupt()"],
  ["if (this.state.isInterrupted) return", ""],
  ['if (life !== "works" || work !== undefined) return', 'if (life !== "works") return'],
  ['if (life !== "works" || work !== undefined) return', "if (work !== undefined) return"],
  ['if (!isClosingBeside) this.#begin({ do: "finish"', 'this.#begin({ do: "finish"'],
  ["preview: previewed === until", "preview: previewed !== undefined"],
  ["preview: previewed === until", "preview: false"],
  ["if (isClosingBeside) return\n", ""],
  ["if (isDue) this.#planNext(until)", ""],
  ["if (isDue) this.#beginCaption(until)", "this.#beginCaption(until)"],
  ["this.#become({ work: work.do, isInterrupted: false })", "this.#become({ work: work.do })"],
  ["dueAt: Number.POSITIVE_INFINITY, captionUntil: until", "dueAt: Number.POSITIVE_INFINITY"],
  ["if (canClose && !closesBeside) return this.#begin", "if (canClose) return this.#begin"],
  ["if (canClose && !closesBeside) return this.#begin", "if (!closesBeside) return this.#begin"],
  ["if (canClose && !this.state.isClosingBeside) {", "if (canClose) {"],
  ["this.#become({ isClosingBeside: true })", ""],
  [
    "if (end === undefined && silence === undefined) return this.#begin",
    "if (silence === undefined) return this.#begin",
  ],
  [
    "if (end === undefined && silence === undefined) return this.#begin",
    "if (end === undefined) return this.#begin",
  ],
  ["this.#planNext(captionUntil)\n", "\n"],
  ['if (transcript !== undefined) this.#do({ do: "show", as: "caption", transcript })', ""],
  ["this.#planNext(this.state.captionUntil)\n", "\n"],
  ["if (previewing !== undefined && silence === previewing.pause) {", "if (previewing !== undefined) {"],
  ["silence: undefined,\n        previewMs: tookMs,", "previewMs: tookMs,"],
  ["previewMs: tookMs,", ""],
  ["this.#become({ previewed: until })", ""],
  ['this.#do({ do: "show", as: "preview", transcript })', ""],
  ["paceSamples > windows.samples ? until + paceSamples :", ""],
  ["isDue: samples >= dueAt", "isDue: false"],
  ["if (end !== undefined) return total\n", ""],
  ["previewing?.pause === silence ? previewing?.until : undefined", "previewing?.until"],
  ["total - until <= most", "true"],
  ["[previewed, coming]", "[previewed]"],
  ["[previewed, coming]", "[coming]"],
]

it("keeps its promises over 100,000 random histories", () => {
  liveListening(listening, 100_000)
})

describe("a decider that", () => {
  it("is unchanged breaks none", () => {
    liveListening(decided(), 3_000)
  })

  it.each(mutations)("has for %j %j breaks a promise", (...mutation) => {
    const changed = decided(mutation)
    expect(() => liveListening(changed, 3_000)).toThrow()
  })
})
