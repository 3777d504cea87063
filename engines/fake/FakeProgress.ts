// The pieces of all replies of one request to the fake engine, step by step, and the tokens that they cost.
import { textPromptsOf } from "../protocol/Contents.ts"
import type { DeltaDetail, GenerateEnd, GenerateRequest, Outlet, TextDelta } from "../protocol/Engine.ts"
import { type FakeReply, fakeLogprob, fakeReply } from "./FakeReply.ts"
import type { FakeScript } from "./FakeScript.ts"

export class FakeProgress {
  readonly #request: GenerateRequest
  readonly #replies: ReadonlyArray<FakeReply>
  readonly #budget: number
  /** Replies that are generated for `bestOf` and not returned: as long as the first. */
  readonly #unseen: number
  /** `bestOf` is known at the end only. */
  readonly #held: Array<TextDelta> | undefined
  /** Steps until the longest reply ends. */
  readonly steps: number
  #tokens = 0

  constructor(request: GenerateRequest, script: FakeScript, budget: number) {
    const { bestOf, replies = 1 } = request
    this.#request = request
    this.#budget = budget
    this.#replies = Array.from({ length: replies }, (_, reply) => fakeReply(request, script, reply))
    this.#unseen = Math.max(0, (bestOf ?? replies) - replies)
    this.#held = bestOf === undefined ? undefined : []
    this.steps = Math.max(...this.#replies.map(({ total }) => Math.min(total, budget)))
  }

  #lengthOf({ total }: FakeReply): number {
    return Math.min(total, this.#budget)
  }

  #push(out: Outlet<"text">, delta: TextDelta): void {
    if (this.#held === undefined) out.push(delta)
    else this.#held.push(delta)
  }

  /** The prompt, for requests with `echo`: its words are its tokens, and an id is a word. */
  echo(out: Outlet<"text">): void {
    const { echo = false, logprobs, prompt } = this.#request
    const [asked] = textPromptsOf(prompt)
    if (!echo || asked === undefined) return
    const words =
      typeof asked === "string" ? (asked.match(/\s*\S+|\s+$/gu) ?? []) : asked.map((id) => ` ${id}`)
    const scored = words.map((word, at) => ({
      ...fakeLogprob(word, at === 0 ? 0 : (logprobs ?? 0)),
      ...(at === 0 ? { logprob: Number.NaN } : {}),
    }))
    for (const reply of this.#replies.keys()) {
      const detail = {
        ...(reply === 0 ? {} : { reply }),
        ...(logprobs === undefined ? {} : { logprobs: scored }),
      }
      const isPlain = reply === 0 && logprobs === undefined
      this.#push(out, { text: words.join(""), completionTokens: 0, ...(isPlain ? {} : { detail }) })
    }
  }

  /** One token of each reply that has not ended. */
  step(out: Outlet<"text">, index: number): void {
    const { logprobs } = this.#request
    const [first] = this.#replies
    if (first !== undefined && index < this.#lengthOf(first)) this.#tokens += this.#unseen
    for (const [reply, pieces] of this.#replies.entries()) {
      if (index >= this.#lengthOf(pieces)) continue
      this.#tokens++
      const { part, text } = pieces.at(index)
      const detail: DeltaDetail = {
        ...(this.#replies.length === 1 ? {} : { reply }),
        ...(part === undefined ? {} : { part }),
        ...(logprobs === undefined || part !== undefined ? {} : { logprobs: [fakeLogprob(text, logprobs)] }),
      }
      const completionTokens = this.#tokens
      const isPlain = part === undefined && logprobs === undefined && this.#replies.length === 1
      this.#push(out, isPlain ? { text, completionTokens } : { text, completionTokens, detail })
    }
  }

  end(out: Outlet<"text">, promptTokens: number): GenerateEnd {
    for (const delta of this.#held ?? []) out.push({ ...delta, completionTokens: this.#tokens })
    const finishReasons = this.#replies.map(({ hasCalls, total }) =>
      total > this.#budget ? "length" : hasCalls ? "tool_calls" : "stop",
    )
    const reasoningTokens = this.#replies.reduce((sum, reply) => {
      let thoughts = 0
      while (thoughts < this.#lengthOf(reply) && reply.at(thoughts).part?.kind === "reasoning") thoughts++
      return sum + thoughts
    }, 0)
    return {
      finishReason: finishReasons[0] ?? "stop",
      promptTokens,
      completionTokens: this.#tokens,
      ...(reasoningTokens === 0 ? {} : { reasoningTokens }),
      ...(finishReasons.length === 1 ? {} : { finishReasons }),
    }
  }
}
