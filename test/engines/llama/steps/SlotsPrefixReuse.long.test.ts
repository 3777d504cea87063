// Random models written at test time, a llama and a hybrid whose memory cannot be cut: warm sequences give the same
// text as cold ones, and evaluate less.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { ChatTurn, GenerateRequest, TextEngine } from "#engines/protocol/Engine.ts"
import { generateText, textRequest } from "../../../support/engines/EngineHarness.ts"
import { openToy } from "../../../support/engines/ToyEngine.ts"

const user = (content: string): ChatTurn => ({ role: "user", content })
const assistant = (content: string): ChatTurn => ({ role: "assistant", content })

for (const kind of ["llama", "qwen35"] as const)
  describe(`prefix reuse in a ${kind}`, () => {
    const long = "tell me a story of a fox and a robot who went out into the world and came back in the end "
    const conversation = (turns: number): ReadonlyArray<ChatTurn> =>
      Array.from({ length: turns }, (_, at) =>
        at % 2 === 0 ? user(`${long}${at}`) : assistant(`so it was ${at}`),
      )

    it.live("warm sequences give the text of cold ones, greedy and sampled", () =>
      Effect.gen(function* () {
        const warm = yield* openToy(kind, { seed: 7 })
        const prompts = [conversation(1), conversation(3), [...conversation(1), user("no")]]
        for (const [at, prompt] of prompts.entries()) {
          const sampling = { temperature: at % 2 === 0 ? 0 : 0.8, seed: at }
          const request = textRequest(prompt, { maxTokens: 24, sampling })
          const cold = yield* Effect.scoped(
            Effect.flatMap(openToy(kind, { seed: 7 }), (engine) => generateText(engine, request)),
          )
          const reply = yield* generateText(warm, request)
          expect(cold.started.cachedTokens).toBe(0)
          expect(reply.text).toBe(cold.text)
          if (at > 0) expect(reply.started.cachedTokens).toBeGreaterThan(20)
        }
      }).pipe(Effect.scoped),
    )

    it.live("the same prompt, and the next message, evaluate only what is new", () =>
      Effect.gen(function* () {
        const engine = yield* openToy(kind, { seed: 7 })
        const request = textRequest(conversation(1), { maxTokens: 8 })
        const first = yield* generateText(engine, request)
        const again = yield* generateText(engine, request)
        // The markers that open a reply may be evaluated again, the message before them not.
        expect(again.started.cachedTokens).toBeGreaterThan(first.started.promptTokens - 20)
        expect(again.text).toBe(first.text)
        // Another conversation in between must not take this one's sequence.
        yield* generateText(engine, textRequest([user("Hello world, what is up with you")], { maxTokens: 8 }))
        const next = yield* generateText(engine, textRequest(conversation(3), { maxTokens: 8 }))
        expect(next.started.cachedTokens).toBeGreaterThan(first.started.promptTokens - 20)
      }).pipe(Effect.scoped),
    )

    it.live("a shared system message is kept, and without memory for checkpoints nothing breaks", () =>
      Effect.gen(function* () {
        const chat = (content: string) =>
          textRequest([{ role: "system", content: long.repeat(2) }, user(content)], { maxTokens: 8 })
        const engine = yield* openToy(kind, { seed: 7 }, { slots: 1 })
        yield* generateText(engine, chat("Hello"))
        const other = yield* generateText(engine, chat("stop"))
        expect(other.started.cachedTokens).toBeGreaterThan(other.started.promptTokens / 2)
        const bare = yield* openToy(kind, { seed: 7 }, { slots: 1, checkpointMegabytes: 0 })
        yield* generateText(bare, chat("Hello"))
        const bareOther = yield* generateText(bare, chat("stop"))
        expect(bareOther.text).toBe(other.text)
        if (kind === "qwen35") expect(bareOther.started.cachedTokens).toBe(0)
      }).pipe(Effect.scoped),
    )

    it.live("what one owner sent is evaluated again for another, unless the catalog shares it", () =>
      Effect.gen(function* () {
        const chat = (owner: number, system: string, content: string) => ({
          ...textRequest([{ role: "system", content: system }, user(content)], { maxTokens: 8 }),
          owner,
        })
        const cachedIn = (engine: TextEngine, request: GenerateRequest) =>
          Effect.map(generateText(engine, request), ({ started, text }) => ({ ...started, text }))
        const shared = long.repeat(2).trim()
        const engine = yield* openToy(kind, { seed: 7 }, { sharedPrompts: [shared] })
        yield* generateText(engine, chat(1, `the code is 4711 ${shared}`, "Hello"))
        const guess = yield* cachedIn(engine, chat(2, `the code is 4711 ${shared}`, "Hello"))
        expect(guess.cachedTokens).toBe(0)
        const own = yield* cachedIn(engine, chat(1, `the code is 4711 ${shared}`, "Hello"))
        expect(own.cachedTokens).toBeGreaterThan(own.promptTokens - 20)

        // Declared: evaluated once, for the first owner that sends it; no further than its own end.
        expect((yield* cachedIn(engine, chat(1, shared, "Hello"))).cachedTokens).toBe(0)
        const second = yield* cachedIn(engine, chat(2, shared, "Hello"))
        const third = yield* cachedIn(engine, chat(3, shared, "stop"))
        expect(second.cachedTokens).toBeGreaterThan(60)
        expect(second.cachedTokens).toBeLessThan(second.promptTokens - 2)
        expect(third.cachedTokens).toBe(second.cachedTokens)
        expect((yield* cachedIn(engine, chat(4, `${shared} more`, "Hello"))).cachedTokens).toBe(0)
        const cold = yield* Effect.scoped(
          Effect.flatMap(openToy(kind, { seed: 7 }), (fresh) => cachedIn(fresh, chat(3, shared, "stop"))),
        )
        expect(third.text).toBe(cold.text)

        // Without memory for saved states nothing is shared, and nothing breaks.
        const bare = yield* openToy(kind, { seed: 7 }, { sharedPrompts: [shared], checkpointMegabytes: 0 })
        yield* generateText(bare, chat(1, shared, "Hello"))
        const unshared = yield* cachedIn(bare, chat(2, shared, "stop"))
        expect(unshared.cachedTokens).toBe(0)
        expect(unshared.text).toBe(cold.text)
      }).pipe(Effect.scoped),
    )

    it.live("sixteen conversations on four sequences: each text as if alone", () =>
      Effect.gen(function* () {
        const engine = yield* openToy(kind, { seed: 7 })
        const request = (at: number) =>
          textRequest([user(`${long.slice(0, 20 + at * 5)}`)], {
            maxTokens: 20,
            sampling: { temperature: 0.7, seed: at },
          })
        const alone = []
        for (let at = 0; at < 16; at++) alone.push((yield* generateText(engine, request(at))).text)
        const together = yield* Effect.all(
          alone.map((_, at) => generateText(engine, request(at))),
          { concurrency: "unbounded" },
        )
        expect(together.map(({ text }) => text)).toEqual(alone)
      }).pipe(Effect.scoped),
    )
  })
