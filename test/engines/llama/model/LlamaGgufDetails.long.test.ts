// The built-in text model through the whole adapter, asked for more than text: log probabilities, biases, several replies.
import { fileURLToPath } from "node:url"
import { expect, layer } from "@effect/vitest"
import { Context, Effect, Fiber, Layer } from "effect"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import type { TextDelta, TextEngine } from "#engines/protocol/Engine.ts"
import {
  generateText,
  openText,
  startText,
  textOf,
  textRequest,
} from "../../../support/engines/EngineHarness.ts"

import { openToy } from "../../../support/engines/ToyEngine.ts"

const weights = fileURLToPath(import.meta.resolve("../../../../models/llama-demo/llama-demo-Q8_0.gguf"))
const slots = 6

class Demo extends Context.Service<Demo, TextEngine>()("test/Demo") {
  static readonly layer = Layer.effect(Demo, openText(llamaGguf, { weights }, { contextTokens: 1024, slots }))
}

const question = "Tell me a story about a robot."
const sampled = (seed: number) => ({ maxTokens: 30, sampling: { temperature: 1.1, seed } })

layer(Demo.layer, { excludeTestServices: true })("the built-in text model", (it) => {
  it.effect("log probabilities: those of a greedy reply are the largest, and do not change its text", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const plain = yield* generateText(engine, textRequest("What is the capital of Italy?"))
      const scored = yield* generateText(
        engine,
        textRequest("What is the capital of Italy?", { logprobs: 3 }),
      )
      expect(scored.text).toBe(plain.text)
      expect(scored.end).toEqual(plain.end)
      const logprobs = scored.deltas.flatMap(({ detail }) => detail?.logprobs ?? [])
      expect(logprobs).toHaveLength(plain.end.completionTokens)
      for (const { logprob, token, top } of logprobs) {
        expect(top).toHaveLength(3)
        expect(top[0]).toMatchObject({ token, logprob })
        const mass = top.reduce((sum, one) => sum + Math.exp(one.logprob), 0)
        expect(mass).toBeLessThan(1.0001)
      }
    }),
  )

  it.effect("a bias excludes a token, and unknown tokens are refused", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const request = textRequest("What is the capital of Italy?", { maxTokens: 1 })
      const [first] = (yield* generateText(engine, { ...request, logprobs: 1 })).deltas
      const changes = Effect.fnUntraced(function* (from: number, to: number) {
        const logitBias = Array.from({ length: to - from }, (_, at) => [from + at, -100] as const)
        return (yield* generateText(engine, { ...request, logitBias })).text !== first!.text
      })
      // The only token that has an effect is the one that was the most likely.
      let [from, to] = [0, 2048]
      while (to - from > 1) {
        const middle = (from + to) >> 1
        const isBelow = yield* changes(from, middle)
        expect(yield* changes(middle, to)).toBe(!isBelow)
        if (isBelow) to = middle
        else from = middle
      }
      const refused = yield* Effect.flip(generateText(engine, { ...request, logitBias: [[1e9, 1]] }))
      expect(refused).toMatchObject({ reason: "InvalidInput", field: "logit_bias" })
    }),
  )

  it.effect("a reply does not end by itself before its least length", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const { end } = yield* generateText(engine, textRequest("What is 7 + 5?", { minTokens: 30 }))
      expect(end.completionTokens).toBeGreaterThanOrEqual(30)
    }),
  )

  it.effect("several replies share their prompt and are those of single requests with the next seeds", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const singles = []
      for (let reply = 0; reply < slots; reply++)
        singles.push(yield* generateText(engine, textRequest(question, sampled(7 + reply))))
      const all = yield* generateText(engine, textRequest(question, { ...sampled(7), replies: slots }))
      const texts = singles.map((_, reply) =>
        all.deltas
          .filter(({ detail }) => (detail?.reply ?? 0) === reply)
          .map(({ text }) => text)
          .join(""),
      )
      expect(texts).toEqual(singles.map(({ text }) => text))
      expect(all.end.finishReasons).toEqual(singles.map(({ end }) => end.finishReason))
      expect(all.end.completionTokens).toBe(singles.reduce((sum, { end }) => sum + end.completionTokens, 0))
      expect(all.deltas.at(-1)?.completionTokens).toBe(all.end.completionTokens)
    }),
  )

  it.effect("more replies than sequences are refused, and the best of several is the most likely one", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const refused = yield* Effect.flip(generateText(engine, textRequest(question, { replies: slots + 1 })))
      expect(refused).toMatchObject({ reason: "InvalidInput", field: "n" })
      expect(refused.detail).toContain(String(slots))
      const means = []
      for (let reply = 0; reply < 4; reply++) {
        const { deltas, text } = yield* generateText(
          engine,
          textRequest(question, { ...sampled(20 + reply), logprobs: 0 }),
        )
        const logprobs = deltas.flatMap(({ detail }) => detail?.logprobs ?? [])
        means.push({ text, mean: logprobs.reduce((sum, { logprob }) => sum + logprob, 0) / logprobs.length })
      }
      means.sort((a, b) => b.mean - a.mean)
      const best = yield* generateText(
        engine,
        textRequest(question, { ...sampled(20), replies: 2, bestOf: 4 }),
      )
      const textOfReply = (reply: number) =>
        best.deltas
          .filter(({ detail }) => (detail?.reply ?? 0) === reply)
          .map(({ text }) => text)
          .join("")
      expect([textOfReply(0), textOfReply(1)]).toEqual(means.slice(0, 2).map(({ text }) => text))
    }),
  )

  it.effect("requests for several replies and for one end, however many come, and a cancel frees all", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const requests = Array.from({ length: 12 }, (_, at) =>
        textRequest(question, { ...sampled(at), replies: 1 + (at % slots) }),
      )
      const cancelled = yield* startText(engine, textRequest(question, { ...sampled(1), replies: slots }))
      const all = yield* Effect.forkChild(
        Effect.all(
          requests.map((request) => generateText(engine, request)),
          { concurrency: "unbounded" },
        ),
        { startImmediately: true },
      )
      yield* cancelled.reached(9)
      yield* Fiber.interrupt(cancelled.fiber)
      const ends = yield* Fiber.join(all)
      expect(ends.map(({ end }) => end.finishReasons?.length ?? 1)).toEqual(
        requests.map(({ replies }) => replies),
      )
      expect(textOf(cancelled.outlet)).not.toBe("")
    }),
  )

  it.effect(
    "an echo comes first and has no tokens; a suffix needs tokens that this model does not have",
    () =>
      Effect.gen(function* () {
        const engine = yield* Demo
        const plain = yield* generateText(engine, textRequest({ text: "Once upon a time" }, { maxTokens: 6 }))
        const echoed = yield* generateText(
          engine,
          textRequest({ text: "Once upon a time" }, { maxTokens: 6, echo: true }),
        )
        expect(echoed.text).toBe(`Once upon a time${plain.text}`)
        expect(echoed.end).toEqual(plain.end)
        expect(echoed.deltas[0]).toEqual({ text: "Once upon a time", completionTokens: 0 })
        const refused = yield* Effect.flip(generateText(engine, textRequest({ text: "a" }, { suffix: "b" })))
        expect(refused).toMatchObject({ reason: "InvalidInput", field: "suffix" })
      }),
  )
})

/** Everything that a reply says of the tokens of its prompt and of its own. */
const logprobsOf = (deltas: ReadonlyArray<TextDelta>, reply = 0) =>
  deltas
    .filter(({ detail }) => (detail?.reply ?? 0) === reply)
    .flatMap(({ detail }) => detail?.logprobs ?? [])

layer(Demo.layer, { excludeTestServices: true })("an echoed prompt with log probabilities", (it) => {
  it.effect("has those of a request for each of its tokens, and NaN for the first", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const ids = Array.from({ length: 40 }, (_, at) => 300 + ((at * 97) % 150))
      const echoed = yield* generateText(engine, {
        ...textRequest({ text: "" }, { maxTokens: 0, echo: true, logprobs: 3 }),
        prompt: { texts: [ids] },
      })
      expect(echoed.end).toMatchObject({ finishReason: "length", promptTokens: 40, completionTokens: 0 })
      const all = logprobsOf(echoed.deltas)
      expect(all).toHaveLength(ids.length)
      expect(all[0]).toMatchObject({ logprob: Number.NaN, top: [] })
      for (const [at, id] of ids.entries()) {
        if (at === 0) continue
        // The bias makes the token certain; log probabilities are those without it.
        const forced = yield* generateText(engine, {
          ...textRequest({ text: "" }, { maxTokens: 1, logprobs: 3, logitBias: [[id, 100]] }),
          prompt: { texts: [ids.slice(0, at)] },
          owner: at,
        })
        const [alone] = logprobsOf(forced.deltas)
        expect(forced.started.cachedTokens).toBe(0)
        expect(all[at]!.token).toBe(alone!.token)
        expect(all[at]!.logprob).toBeCloseTo(alone!.logprob, 2)
        expect(all[at]!.top.map(({ logprob }) => logprob)).toEqual(
          alone!.top.map(({ logprob }) => expect.closeTo(logprob, 2)),
        )
      }
    }),
  )

  it.effect("goes on with the reply, whose tokens have theirs as without an echo, and reuses nothing", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const text = "Once upon a time there was a fox who could count to ten. é日 Then"
      const request = textRequest({ text }, { maxTokens: 5, logprobs: 2, replies: 2 })
      const plain = yield* generateText(engine, request)
      const echoed = yield* generateText(engine, { ...request, echo: true })
      expect(echoed.started.cachedTokens).toBe(0)
      expect(echoed.end).toEqual(plain.end)
      for (const reply of [0, 1]) {
        const textOfReply = (deltas: ReadonlyArray<TextDelta>) =>
          deltas
            .filter(({ detail }) => (detail?.reply ?? 0) === reply)
            .map((delta) => delta.text)
            .join("")
        expect(textOfReply(echoed.deltas)).toBe(text + textOfReply(plain.deltas))
        const own = logprobsOf(plain.deltas, reply)
        const all = logprobsOf(echoed.deltas, reply)
        expect(all).toHaveLength(echoed.started.promptTokens + own.length)
        for (const [at, { logprob, token }] of own.entries())
          expect(all[echoed.started.promptTokens + at]).toMatchObject({
            token,
            logprob: expect.closeTo(logprob, 2),
          })
        const ofPrompt = all.slice(0, echoed.started.promptTokens)
        expect(ofPrompt.reduce((sum, { units }) => sum + units!, 0)).toBe(text.length)
      }
      // Calls of a prompt that is read have at most 16 rows; one of any length fits.
      const long = yield* generateText(engine, {
        ...textRequest({ text: text.repeat(12) }, { maxTokens: 1, logprobs: 0, echo: true }),
      })
      expect(logprobsOf(long.deltas)).toHaveLength(long.started.promptTokens + long.end.completionTokens)
    }),
  )

  it.effect("several prompts are numbered, counted once, and each is what it is alone", () =>
    Effect.gen(function* () {
      const engine = yield* Demo
      const texts = ["Once upon a time", [300, 301, 302, 303], "The robot"]
      const request = { ...textRequest({ text: "" }, { maxTokens: 4, logprobs: 1, echo: true, replies: 2 }) }
      const together = yield* generateText(engine, { ...request, prompt: { texts } })
      let promptTokens = 0
      let completionTokens = 0
      const finishReasons: Array<string> = []
      for (const [at, text] of texts.entries()) {
        const alone = yield* generateText(engine, { ...request, prompt: { texts: [text] } })
        promptTokens += alone.end.promptTokens
        completionTokens += alone.end.completionTokens
        finishReasons.push(...(alone.end.finishReasons ?? []))
        for (const reply of [0, 1])
          expect(logprobsOf(together.deltas, 2 * at + reply).map(({ token }) => token)).toEqual(
            logprobsOf(alone.deltas, reply).map(({ token }) => token),
          )
      }
      expect(together.started.promptTokens).toBe(promptTokens)
      expect(together.end).toMatchObject({ promptTokens, completionTokens, finishReasons })
      expect(together.deltas.at(-1)!.completionTokens).toBe(completionTokens)
      const refused = yield* Effect.flip(
        generateText(engine, { ...request, prompt: { texts: ["fine", [1, 1e6]] } }),
      )
      expect(refused).toMatchObject({ reason: "InvalidInput", field: "prompt[1]" })
      const long = yield* Effect.flip(
        generateText(engine, { ...request, prompt: { texts: ["fine", "fine", Array(5_000).fill(300)] } }),
      )
      expect(long).toMatchObject({ reason: "PromptTooLong", field: "prompt[2]", promptTokens: 5_000 })
    }),
  )
})

layer(Layer.empty)("a model with a recurrent state", (it) => {
  it.effect("copies it for several replies", () =>
    Effect.gen(function* () {
      const engine = yield* openToy("qwen35", { seed: 4 })
      const singles = []
      for (let reply = 0; reply < 4; reply++)
        singles.push((yield* generateText(engine, textRequest(question, sampled(reply)))).text)
      for (let repeat = 0; repeat < 2; repeat++) {
        const { deltas } = yield* generateText(engine, textRequest(question, { ...sampled(0), replies: 4 }))
        const texts = singles.map((_, reply) =>
          deltas
            .filter(({ detail }) => (detail?.reply ?? 0) === reply)
            .map(({ text }) => text)
            .join(""),
        )
        expect(texts).toEqual(singles)
      }
    }).pipe(Effect.scoped),
  )
})
