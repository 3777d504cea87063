// The text engine under the same load as `bareLoop`, in this process, without the gateway: what edgewise's own token
// loop costs or saves. Called by the bench harness, by a test, and by hand:
//   node bench/text/engineLoop.ts models/llama-demo/llama-demo-Q8_0.gguf
import { Effect, type Scope } from "effect"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import type { EngineError, GenerateRequest, Outlet } from "#engines/protocol/Engine.ts"
import { bareLoop, contextTokensFor, type DecodeLoad, type DecodeRate, measured, seedOf } from "./bareLoop.ts"

const requestOf = (load: DecodeLoad, seed: number, maxTokens: number): GenerateRequest => ({
  prompt: { text: `${load.prompt}${seed}` },
  maxTokens,
  sampling: { temperature: 0.7, topP: 1, topK: 0, frequencyPenalty: 0, presencePenalty: 0, seed },
  stop: [],
})

/** Counts characters and throws them away. */
const discarding = (): Outlet<"text"> => {
  let characters = 0
  return {
    started: () => {},
    push: ({ text }) => {
      characters += text.length
    },
    paused: () => characters < 0,
    resumed: Effect.void,
  }
}

export const engineLoop = (
  load: DecodeLoad,
  repeats = 1,
): Effect.Effect<ReadonlyArray<DecodeRate>, EngineError, Scope.Scope> =>
  Effect.gen(function* () {
    const engine = yield* llamaGguf.acquire({
      modelId: "bench",
      adapter: llamaGguf.adapter,
      files: { weights: load.weights },
      options: { contextTokens: contextTokensFor(load), slots: load.streams },
      threads: load.threads,
    })
    if (engine.kind !== "text") return yield* Effect.die(new Error("no text engine"))
    const stream = Effect.fnUntraced(function* (number: number) {
      let tokens = 0
      for (let reply = 0; tokens < load.tokens; reply++) {
        const request = requestOf(load, seedOf(number, reply), load.tokens - tokens)
        tokens += (yield* engine.generate(request, discarding())).completionTokens
      }
      return tokens
    })
    const all = Effect.forEach(
      Array.from({ length: load.streams }, (_, seed) => seed),
      stream,
      { concurrency: "unbounded" },
    ).pipe(Effect.map((counts) => counts.reduce((sum, count) => sum + count, 0)))
    const rates: Array<DecodeRate> = []
    for (let repeat = 0; repeat < repeats; repeat++)
      rates.push(yield* Effect.promise(() => measured(() => Effect.runPromise(all))))
    return rates
  })

const best = (rates: ReadonlyArray<DecodeRate>): DecodeRate =>
  rates.reduce((a, b) => (b.tokensPerSecond > a.tokensPerSecond ? b : a))

/** Both loops by turns, so that a busy machine slows both; the best of each. */
export const compareLoops = (
  load: DecodeLoad,
  rounds: number,
): Effect.Effect<{ readonly bare: DecodeRate; readonly engine: DecodeRate }, EngineError> =>
  Effect.gen(function* () {
    const bare: Array<DecodeRate> = []
    const engine: Array<DecodeRate> = []
    for (let round = 0; round < rounds; round++) {
      bare.push(...(yield* Effect.promise(() => bareLoop(load))))
      engine.push(...(yield* Effect.scoped(engineLoop(load))))
    }
    return { bare: best(bare), engine: best(engine) }
  })

const rate = ({ tokensPerSecond, cpuMs, tokens }: DecodeRate): string =>
  `${tokensPerSecond.toFixed(0)} tokens/s, ${((cpuMs / tokens) * 1000).toFixed(0)} us of CPU a token`

if (import.meta.main) {
  const weights = process.argv[2]
  if (weights === undefined) throw new Error("node bench/text/engineLoop.ts <model.gguf> [threads]")
  const threads = Number(process.argv[3] ?? 1)
  for (const streams of [1, 4, 16]) {
    const load = { weights, streams, threads, tokens: 256, prompt: "Once upon a time there was a fox " }
    const { bare, engine } = await Effect.runPromise(compareLoops(load, 3))
    const ratio = engine.tokensPerSecond / bare.tokensPerSecond
    process.stdout.write(
      `${streams} streams: bare ${rate(bare)}; engine ${rate(engine)}; ratio ${ratio.toFixed(2)}\n`,
    )
  }
}
