// A node beside llama.cpp's own server on the same generated weights, threads and requests, alternately: first token and
// tokens a second of streams that begin together. Run by hand with a llama.cpp binary, which is not part of this project:
//
//   node bench/text/compare/servers.ts --server llama-server [--size 0.2b] [--threads 2] [--rounds 5]
//
// Both listen on 127.0.0.1.
import { Effect } from "effect"
import { ChatReply, streamed } from "#harness/client/TextRequest.ts"
import { median } from "#harness/figures/Statistics.ts"
import { describeMachine, machineLine } from "#harness/report/Machine.ts"
import { textWeights } from "../../sizes/text/TextWeights.ts"
import { neverAborted, serverOf } from "../../support/Ask.ts"
import type { Target } from "../../support/Connection.ts"
import { number } from "../../support/Findings.ts"
import { startGateway } from "../../support/Gateway.ts"
import { completionsPath } from "../Models.ts"
import { Serials, sizedCompletion, sizedEntry } from "../sized/Models.ts"
import { readFlags } from "./Flags.ts"
import { serverFlags, startLlamaServer, versionOf } from "./LlamaServer.ts"

const promptTokens = 100
const replyTokens = 64
const streamCounts = [1, 8]

const { rounds, server, size, threads } = readFlags({ size: "0.2b", rounds: "5" })

interface Reply {
  readonly firstTokenMs: number
  readonly tokens: number
}

/** One streamed completion, from the request to its end. Only llama-server knows `min_p`, which is set to cut nothing. */
const stream = async (target: Target, prompt: string): Promise<Reply> => {
  const fields = { ...sizedCompletion(prompt, replyTokens), ...(target.key === "" ? { min_p: 0 } : {}) }
  const startedMs = performance.now()
  const reply = new ChatReply()
  const endMs = await streamed(serverOf(target), { path: completionsPath, fields }, reply, neverAborted)
  const { completionTokens: tokens = 0, pieces } = reply
  if (tokens !== replyTokens) throw new Error(`a reply of ${tokens} tokens instead of ${replyTokens}`)
  return { firstTokenMs: (pieces[0] ?? endMs) - startedMs, tokens }
}

interface Reading {
  readonly firstTokenMs: number
  readonly lastFirstTokenMs: number
  readonly tokensPerSecond: number
}

const read = async (target: Target, prompts: ReadonlyArray<string>): Promise<Reading> => {
  const startedMs = performance.now()
  const replies = await Promise.all(prompts.map((prompt) => stream(target, prompt)))
  const elapsedMs = performance.now() - startedMs
  const first = replies.map(({ firstTokenMs }) => firstTokenMs)
  const tokens = replies.reduce((sum, reply) => sum + reply.tokens, 0)
  return {
    firstTokenMs: median(first),
    lastFirstTokenMs: Math.max(...first),
    tokensPerSecond: (tokens / elapsedMs) * 1000,
  }
}

const print = (
  what: string,
  unit: string,
  node: ReadonlyArray<number>,
  llama: ReadonlyArray<number>,
): void => {
  const ratio = median(node.map((value, at) => value / (llama[at] ?? Number.NaN)))
  const cells = [number(median(node)), number(median(llama)), number(ratio)].map((cell) => cell.padStart(9))
  console.info(`${what.padEnd(34)}${cells.join("")}  ${unit}`)
}

const compare = Effect.gen(function* () {
  const weights = yield* Effect.promise(() => textWeights(size))
  const gateway = yield* startGateway({ models: [sizedEntry(weights, threads)] })
  const llama = yield* startLlamaServer({ server, threads, weights })
  const serials = new Serials()
  const targets: readonly [Target, Target] = [gateway.target, { port: llama.port, key: "" }]
  yield* Effect.promise(async () => {
    for (const target of [...targets, ...targets]) await read(target, serials.prompts(2, promptTokens))
    console.info(`${"".padEnd(34)}${["edgewise", "llama", "ratio"].map((name) => name.padStart(9)).join("")}`)
    for (const streams of streamCounts) {
      const node: Array<Reading> = []
      const other: Array<Reading> = []
      for (let round = 0; round < rounds; round++) {
        const prompts = serials.prompts(streams, promptTokens)
        node.push(await read(targets[0], prompts))
        other.push(await read(targets[1], prompts))
      }
      const row = (what: string, unit: string, part: (reading: Reading) => number) =>
        print(`${streams} x ${what}`, unit, node.map(part), other.map(part))
      row("first token, median", "ms", ({ firstTokenMs }) => firstTokenMs)
      row("first token, last", "ms", ({ lastFirstTokenMs }) => lastFirstTokenMs)
      row("tokens/s, prompts included", "tokens/s", ({ tokensPerSecond }) => tokensPerSecond)
    }
  })
})

console.info(machineLine(describeMachine(new Date())))
console.info(
  `${size}, ${threads} threads, prompts of ${promptTokens} tokens, replies of ${replyTokens}, ${rounds} rounds`,
)
console.info(`llama-server ${versionOf(server)}: ${serverFlags(threads).join(" ")}`)
await Effect.runPromise(Effect.scoped(compare))
