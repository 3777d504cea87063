// The effect of operators' requests on the node's event loop: models loaded, unloaded and purged beside sixteen streams.
import { Effect, type Scope } from "effect"
import { exchange } from "#harness/client/Exchange.ts"
import { atMost, figure, type Part } from "#harness/report/Figure.ts"
import { serverOf } from "../support/Ask.ts"
import type { ChildFailed } from "../support/Child.ts"
import { type Gateway, startGateway } from "../support/Gateway.ts"
import { builtInModels, fakeModel } from "./Models.ts"
import { operatorOf, superadminKey } from "./Operator.ts"

const streams = 16
/** Real engines: their weights are read, their processes forked and ended. */
const loaded = ["llm-3.5-27b", "tts-82m"]

/** Streams with a token every 10 ms, until the signal aborts. Resolves when each has begun. */
const openStreams = async ({ target }: Gateway, signal: AbortSignal): Promise<() => number> => {
  let bytes = 0
  const script = `fake:${JSON.stringify({ tokens: 4_000, tokenMs: 10 })}`
  const body = JSON.stringify({
    model: fakeModel.id,
    stream: true,
    max_tokens: 4_096,
    messages: [{ role: "user", content: script }],
  })
  const outgoing = { path: "/v1/chat/completions", type: "application/json", body, signal }
  for (let i = 0; i < streams; i++) {
    await new Promise<void>((begun, reject) => {
      const onChunk = (chunk: Buffer) => {
        bytes += chunk.length
      }
      // A stream that has begun ends with the purge.
      exchange(serverOf(target), outgoing, { onHead: () => begun(), onChunk }).catch(reject)
    })
  }
  return () => bytes
}

export const controlLoop = (rounds: number): Effect.Effect<Part, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const models = [fakeModel, ...(yield* Effect.promise(builtInModels))]
    const gateway = yield* startGateway({ models })
    const leaving = new AbortController()
    const [operator, bytes] = yield* Effect.promise(async () => {
      const made = operatorOf(gateway, await superadminKey(gateway))
      await made.load(fakeModel.id)
      return [made, await openStreams(gateway, leaving.signal)] as const
    })
    yield* gateway.child.ask("watchLoop")
    const startedMs = performance.now()
    yield* Effect.promise(async () => {
      for (let i = 0; i < rounds; i++) {
        for (const id of loaded) await operator.load(id)
        for (const id of loaded) await operator.unload(id)
      }
    })
    const delivered = (bytes() / (performance.now() - startedMs)) * 1000
    yield* Effect.promise(() => operator.purge())
    const delay = yield* gateway.child.ask("loopDelay")
    leaving.abort()
    return {
      title: `The event loop while models come and go: ${streams} streams, ${rounds} rounds, then a purge`,
      method: `Each round loads and unloads ${loaded.join(" and ")} (built-in weights). The purge is forced.`,
      figures: [
        figure("event loop late, p99", "ms", [delay?.p99 ?? Number.NaN], atMost(10)),
        figure("  longest", "ms", [delay?.longest ?? Number.NaN]),
        figure("  longest by its own work (CPU)", "ms", [delay?.longestWork ?? Number.NaN]),
        figure("streamed meanwhile", "bytes/s", [delivered]),
      ],
    }
  })
