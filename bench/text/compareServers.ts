// A node beside llama.cpp's own server on the same generated weights, threads and requests, alternately: first token and
// tokens a second of streams that begin together. Run by hand with a llama.cpp binary, which is not part of this project:
//
//   node bench/text/compareServers.ts --server llama-server [--size 0.2b] [--threads 2] [--rounds 5]
//
// Both listen on 127.0.0.1. llama-server runs with its defaults except for threads, sequences and context.
import { spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { createServer } from "node:net"
import { availableParallelism } from "node:os"
import { parseArgs } from "node:util"
import { Effect } from "effect"
import { textSizes, textWeights } from "../sizes/text/TextWeights.ts"
import type { Target } from "../support/Connection.ts"
import { number } from "../support/Findings.ts"
import { startGateway } from "../support/Gateway.ts"
import { describeMachine, machineLine } from "../support/Machine.ts"
import { median } from "../support/Statistics.ts"
import { completionsPath } from "./Models.ts"
import { contextTokens, Serials, sizedCompletion, sizedEntry, slots } from "./sized/Models.ts"

const promptTokens = 100
const replyTokens = 64
const streamCounts = [1, 8]

const { values: flags } = parseArgs({
  options: {
    server: { type: "string" },
    size: { type: "string", default: "0.2b" },
    threads: { type: "string", default: String(availableParallelism()) },
    rounds: { type: "string", default: "5" },
  },
})
const size = textSizes.find((name) => name === flags.size)
const { server } = flags
if (server === undefined || size === undefined) {
  console.error(`--server <llama-server> [--size ${textSizes.join("|")}] [--threads n] [--rounds n]`)
  process.exit(2)
}
const threads = Number(flags.threads)
const rounds = Number(flags.rounds)

/** A port that is free now. */
const freePort = async (): Promise<number> => {
  const listener = createServer().listen(0, "127.0.0.1")
  await once(listener, "listening")
  const address = listener.address()
  listener.close()
  await once(listener, "close")
  if (address === null || typeof address === "string") throw new Error("no free port")
  return address.port
}

/** Milliseconds in which weights of two gigabytes load. A guess. */
const loadMs = 60_000

const answersHealth = async (port: number): Promise<void> => {
  const untilMs = performance.now() + loadMs
  while (performance.now() < untilMs) {
    const status = await fetch(`http://127.0.0.1:${port}/health`).then(
      (response) => response.status,
      () => 0,
    )
    if (status === 200) return
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  throw new Error("llama-server does not answer")
}

/** Flags of llama-server besides the model and the port. */
const serverFlags = [
  ["--threads", String(threads)],
  ["--threads-batch", String(threads)],
  ["--parallel", String(slots)],
  ["--ctx-size", String(contextTokens * slots)],
].flat()

const startLlamaServer = (weights: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const port = await freePort()
      const address = ["--model", weights, "--host", "127.0.0.1", "--port", String(port)]
      const child = spawn(server, [...address, ...serverFlags], { stdio: "ignore" })
      const ended = once(child, "exit")
      await Promise.race([
        answersHealth(port),
        ended.then(() => Promise.reject(new Error("llama-server ended"))),
      ])
      return { child, ended, port }
    }),
    ({ child, ended }) =>
      Effect.promise(async () => {
        child.kill("SIGTERM")
        await ended
      }),
  )

interface Reply {
  readonly firstTokenMs: number
  readonly tokens: number
}

/** One streamed completion, from the request to its end. Only llama-server knows `min_p`, which is set to cut nothing. */
const stream = async ({ key, port }: Target, prompt: string): Promise<Reply> => {
  const request = { ...sizedCompletion(prompt, replyTokens), ...(key === "" ? { min_p: 0 } : {}) }
  const startedMs = performance.now()
  const response = await fetch(`http://127.0.0.1:${port}${completionsPath}`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${key}` },
    body: JSON.stringify(request),
  })
  if (!response.ok || response.body === null) throw new Error(`answered ${response.status}`)
  let firstTokenMs = Number.NaN
  let text = ""
  for await (const piece of response.body.pipeThrough(new TextDecoderStream())) {
    text += piece
    if (Number.isNaN(firstTokenMs) && /"text":"[^"]/.test(text)) firstTokenMs = performance.now() - startedMs
  }
  const tokens = Number(/"completion_tokens":(\d+)/.exec(text)?.[1])
  if (tokens !== replyTokens) throw new Error(`a reply of ${tokens} tokens instead of ${replyTokens}`)
  return { firstTokenMs, tokens }
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
  const llama = yield* startLlamaServer(weights)
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

/** It prints its version to standard error. */
const { stderr, stdout } = spawnSync(server, ["--version"], { encoding: "utf8" })
const version = `${stdout ?? ""}${stderr ?? ""}`.replaceAll(/\s+/g, " ").trim()
console.info(machineLine(describeMachine(new Date())))
console.info(
  `${size}, ${threads} threads, prompts of ${promptTokens} tokens, replies of ${replyTokens}, ${rounds} rounds`,
)
console.info(`llama-server ${version}: ${serverFlags.join(" ")}`)
await Effect.runPromise(Effect.scoped(compare))
