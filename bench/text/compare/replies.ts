// A node beside llama.cpp's own server on the same generated weights: streamed replies whose prompts arrive together, alternately. The node
// chooses its number of threads. Run by hand with a llama.cpp binary, which is not part of this project:
//
//   node bench/text/compare/replies.ts --server llama-server [--size 0.2b] [--threads 2] [--rounds 5] [--streams 1,8] [--beside 1] [--pulse-ms 5000]
//
// With `--beside` as many processes compute all the time; with `--pulse-ms` they compute for so long, then rest for as long.
import { Effect } from "effect"
import { median, spreadOf } from "#harness/figures/Statistics.ts"
import { digits } from "#harness/report/Format.ts"
import { describeMachine, machineLine } from "#harness/report/Machine.ts"
import { startNeighbours } from "../../run/Beside.ts"
import { textWeights } from "../../sizes/text/TextWeights.ts"
import type { Target } from "../../support/Connection.ts"
import { startGateway } from "../../support/Gateway.ts"
import { startLoadClient } from "../../support/LoadClient.ts"
import { measuringMs } from "../../support/ModelLoads.ts"
import { Serials, sizedEntry } from "../sized/Models.ts"
import { runToEnd } from "../sized/Stage.ts"
import { readFlags } from "./Flags.ts"
import { serverFlags, startLlamaServer, versionOf } from "./LlamaServer.ts"

const promptTokens = 100
const replyTokens = 64

const { neighbours, pulseMs, rounds, server, size, streamCounts, threads } = readFlags({
  size: "0.2b",
  rounds: "5",
})

/** Of one round; milliseconds, and tokens a second of all replies with their prompts. */
interface Reading {
  readonly rate: number
  readonly firstMedian: number
  readonly firstLast: number
  readonly gapMedian: number
  readonly gapWorst: number
}

const columns: ReadonlyArray<readonly [keyof Reading, string]> = [
  ["rate", "tokens/s"],
  ["firstMedian", "first token, median"],
  ["firstLast", "first token, last"],
  ["gapMedian", "gap, median"],
  ["gapWorst", "gap, worst"],
]

const compare = Effect.gen(function* () {
  const weights = yield* Effect.promise(() => textWeights(size))
  const gateway = yield* startGateway({ models: [sizedEntry(weights)] })
  const llama = yield* startLlamaServer({ server, threads, weights })
  const client = yield* startLoadClient
  const serials = new Serials()
  const targets: readonly [Target, Target] = [gateway.target, { port: llama.port, key: "none" }]
  const read = (target: Target, streams: number) =>
    Effect.map(
      runToEnd({ client, target }, serials.prompts(streams, promptTokens), replyTokens),
      (window): Reading => ({
        rate: (window.completionTokens / window.elapsedMs) * 1000,
        firstMedian: median(window.firstEventMs),
        firstLast: Math.max(...window.firstEventMs),
        gapMedian: window.gaps.p50,
        gapWorst: window.gaps.max,
      }),
    )
  yield* Effect.sleep(measuringMs)
  for (const streams of [1, 8]) for (const target of targets) yield* read(target, streams)
  if (neighbours > 0) yield* startNeighbours({ processes: neighbours, nice: 0, pulseMs })
  const names = ["edgewise", "llama", "ratio", "range of ratios"]
  console.info(`${"".padEnd(34)}${names.map((name) => name.padStart(16)).join("")}`)
  for (const streams of streamCounts) {
    const node: Array<Reading> = []
    const other: Array<Reading> = []
    for (let round = 0; round < rounds; round++) {
      node.push(yield* read(targets[0], streams))
      other.push(yield* read(targets[1], streams))
    }
    for (const [key, name] of columns) {
      const ratios = node.map((reading, at) => reading[key] / (other[at]?.[key] ?? Number.NaN))
      const cells = [
        median(node.map((reading) => reading[key])),
        median(other.map((reading) => reading[key])),
      ]
      const { high, low } = spreadOf(ratios)
      const range = `${digits(low)} to ${digits(high)}`
      const all = [...[...cells, median(ratios)].map(digits), range]
      console.info(`${`${streams} x ${name}`.padEnd(34)}${all.map((cell) => cell.padStart(16)).join("")}`)
    }
  }
})

console.info(machineLine(describeMachine(new Date())))
console.info(
  `${size}, prompts of ${promptTokens} tokens, replies of ${replyTokens}, ${rounds} rounds, ` +
    `${neighbours} busy processes${pulseMs === undefined ? "" : ` that come and go every ${pulseMs} ms`}`,
)
console.info(`llama-server ${versionOf(server)}: ${serverFlags(threads).join(" ")}`)
await Effect.runPromise(Effect.scoped(compare))
