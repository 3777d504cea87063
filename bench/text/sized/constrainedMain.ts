// Replies of the engine with and without a response format, in a process without a node.
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import type { GenerateRequest, Outlet, TextEngine } from "#engines/protocol/Engine.ts"
import { serveCommands } from "../../support/CommandChannel.ts"
import { batchTokens, contextTokens, promptOf, sampling, unendingTokens } from "./Models.ts"

/** As many sequences, so that those of 8 streams are always neighbours: others are evaluated apart. */
const mostStreams = 8

interface RepliesLoad {
  readonly streams: number
  readonly windowMs: number
  readonly format: GenerateRequest["format"]
}

/** Tokens a second in a window that begins when every stream has a token. */
const rateOf = (engine: TextEngine, { format, streams, windowMs }: RepliesLoad, serial: number) =>
  Effect.gen(function* () {
    const counts = new Array<number>(streams).fill(0)
    const begun = yield* Deferred.make<void>()
    const sumOf = () => counts.reduce((sum, count) => sum + count, 0)
    const outletOf = (stream: number): Outlet<"text"> => ({
      started: () => {},
      push: ({ completionTokens }) => {
        counts[stream] = completionTokens
        if (counts.every((count) => count > 0)) Deferred.doneUnsafe(begun, Exit.void)
      },
      paused: () => false,
      resumed: Effect.void,
    })
    const replies = counts.map((_, stream) =>
      engine.generate(
        {
          prompt: { turns: [{ role: "user", content: promptOf(serial + stream, 12) }] },
          maxTokens: unendingTokens,
          stop: [],
          sampling: { ...sampling, frequencyPenalty: 0, presencePenalty: 0, seed: serial + stream },
          ...(format === undefined ? {} : { format }),
        },
        outletOf(stream),
      ),
    )
    const all = yield* Effect.forkChild(Effect.all(replies, { concurrency: "unbounded" }))
    yield* Effect.raceFirst(Deferred.await(begun), Effect.asVoid(Fiber.join(all)))
    const before = sumOf()
    const startedMs = performance.now()
    yield* Effect.sleep(windowMs)
    const rate = (1_000 * (sumOf() - before)) / (performance.now() - startedMs)
    yield* Fiber.interrupt(all)
    return rate
  }).pipe(Effect.runPromise)

let engine: TextEngine | undefined
let serial = 1
const scope = Scope.makeUnsafe()

const commands = {
  load: ({ threads, weights }: { readonly weights: string; readonly threads: number }) =>
    Effect.gen(function* () {
      const loaded = yield* llamaGguf.acquire({
        modelId: "bench",
        adapter: "llama-gguf",
        files: { weights },
        options: { contextTokens, slots: mostStreams, batchTokens },
        threads,
      })
      if (loaded.kind === "text") engine = loaded
    }).pipe(Scope.provide(scope), Effect.runPromise),
  rate: async (load: RepliesLoad): Promise<number> => {
    if (engine === undefined) throw new Error("nothing was loaded")
    serial += load.streams
    return rateOf(engine, load, serial)
  },
  close: () => Effect.runPromise(Scope.close(scope, Exit.void)),
}

export type ConstrainedCommands = typeof commands

serveCommands(commands)
