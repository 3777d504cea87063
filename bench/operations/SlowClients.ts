// A thousand slow clients of each kind of slowhttptest (heads that never end, bodies that trickle, replies that
// are not read) against a node that meanwhile answers ordinary requests on connections of their own, an upload of 4 KB a
// second, and a request whose model is silent for a minute. Measures the effect on the ordinary requests.
import { spawn } from "node:child_process"
import { connect } from "node:net"
import { Effect, type Scope } from "effect"
import { Latencies } from "#harness/figures/Latencies.ts"
import {
  atLeast,
  atMost,
  type Figure,
  figure,
  figureOf,
  type Goal,
  type Part,
  ratioTo,
  readingsOf,
} from "#harness/report/Figure.ts"
import type { ChildFailed } from "../support/Child.ts"
import { type Gateway, startGateway } from "../support/Gateway.ts"
import { fakeModel } from "./Models.ts"

const connections = 1_000
const attackSeconds = 40
/** Milliseconds: the first requests load the model, and V8 compiles late. */
const warmUpMs = 5_000
const quietMs = 20_000
/**
 * Milliseconds between ordinary requests, whether or not the last one was answered: fifty a second, so that a phase has its
 * 99th percentile from 2,000 of them. In sequence, a node that is silent for two seconds would count only once.
 */
const everyMs = 20
/** Most requests that wait for an answer: a further one is not sent and counts as failed. */
const atMostWaiting = 500

/** The largest answer of the node (slowhttptest accepts no gzip). Its unread part is buffered by the kernel. */
const largest = "/docs/scalar.js"
const largestBytes = 3_000_000

const kinds: ReadonlyArray<{
  readonly name: string
  readonly args: (base: string) => ReadonlyArray<string>
}> = [
  {
    name: "-H heads that never end",
    args: (base) => ["-H", "-i", "10", "-x", "24", "-u", `${base}/health`],
  },
  {
    name: "-B bodies that trickle",
    args: (base) => ["-B", "-i", "10", "-s", "8192", "-x", "10", "-u", `${base}/v1/chat/completions`],
  },
  {
    name: "-X replies that are not read",
    args: (base) => ["-X", "-w", "512", "-y", "1024", "-n", "5", "-z", "32", "-k", "3", "-u", base + largest],
  },
]

const baseOf = ({ target }: Gateway): string => `http://127.0.0.1:${target.port}`

const chat = (gateway: Gateway, content: string) =>
  fetch(`${baseOf(gateway)}/v1/chat/completions`, {
    method: "POST",
    headers: { authorization: `Bearer ${gateway.target.key}`, "content-type": "application/json" },
    body: JSON.stringify({ model: "fake", messages: [{ role: "user", content }] }),
  })

/** Requests it once, so that it exists before the attack. Fails if it is smaller than assumed. */
const checkLargest = async (gateway: Gateway): Promise<void> => {
  const response = await fetch(baseOf(gateway) + largest, { headers: { "accept-encoding": "identity" } })
  const { byteLength } = await response.arrayBuffer()
  if (byteLength < largestBytes) throw new Error(`${largest} has ${byteLength} bytes, not ${largestBytes}`)
}

const atLeastOne: Goal = atLeast(1)

interface Seen {
  readonly p50: number
  readonly p99: number
  readonly count: number
  readonly failures: number
}

/** Sends ordinary requests until `stopped`. */
const ordinary = async (gateway: Gateway, stopped: () => boolean): Promise<Seen> => {
  const latencies = new Latencies()
  const waiting = new Set<Promise<void>>()
  let failures = 0
  const ask = async (): Promise<void> => {
    const startedMs = performance.now()
    const ok = await chat(gateway, "hi").then(
      async (response) => (await response.json()) !== undefined && response.status === 200,
      () => false,
    )
    if (ok) latencies.record(performance.now() - startedMs)
    else failures++
  }
  for (let due = performance.now(); !stopped(); due += everyMs) {
    await new Promise((resolve) => setTimeout(resolve, due - performance.now()))
    if (waiting.size >= atMostWaiting) {
      failures++
      continue
    }
    const asked: Promise<void> = ask().finally(() => waiting.delete(asked))
    waiting.add(asked)
  }
  await Promise.all(waiting)
  const { count, p50, p99 } = latencies.percentiles
  return { p50, p99, count, failures }
}

const during = async <A>(gateway: Gateway, work: Promise<A>): Promise<readonly [A, Seen]> => {
  let over = false
  const [result, seen] = await Promise.all([
    work.finally(() => {
      over = true
    }),
    ordinary(gateway, () => over),
  ])
  return [result, seen]
}

/**
 * slowhttptest's report about the availability of the service. An attacker has a machine of its own; here it shares one,
 * and uses a whole core while it waits (measured: 990 ms a second, the gateway 110). So it runs with a low priority.
 */
const attack = (args: ReadonlyArray<string>): Promise<string> =>
  new Promise((resolve, reject) => {
    const child = spawn("nice", [
      "-n",
      "19",
      "slowhttptest",
      "-c",
      String(connections),
      "-r",
      "200",
      "-l",
      String(attackSeconds),
      ...args,
    ])
    let said = ""
    child.stdout.on("data", (text: Buffer) => {
      said = (said + text.toString()).slice(-20_000)
    })
    child.on("error", reject)
    child.on("exit", () => resolve(said))
  })

/** A chat request whose body arrives at 4 KB a second. Returns its status. */
const slowUpload = (gateway: Gateway, seconds: number): Promise<number> =>
  new Promise((resolve) => {
    const body = JSON.stringify({
      model: "fake",
      messages: [{ role: "user", content: "x".repeat(seconds * 4_096) }],
    })
    const socket = connect({ port: gateway.target.port, host: "127.0.0.1" })
    let at = 0
    const timer = setInterval(() => {
      socket.write(body.slice(at, at + 4_096))
      at += 4_096
      if (at >= body.length) clearInterval(timer)
    }, 1_000)
    const end = (status: number) => {
      clearInterval(timer)
      socket.destroy()
      resolve(status)
    }
    socket.on("data", (reply) => end(Number(reply.toString("latin1").split(" ")[1])))
    socket.on("error", () => end(0))
    socket.on("close", () => end(0))
    socket.write(
      `POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${gateway.target.key}\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n`,
    )
  })

export const slowClients = (): Effect.Effect<Part, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const gateway = yield* startGateway({ models: [fakeModel] })
    const figures = yield* Effect.promise(async () => {
      const found: Array<Figure> = []
      const pass = (ms: number) => during(gateway, new Promise((resolve) => setTimeout(resolve, ms)))
      await checkLargest(gateway)
      await pass(warmUpMs)
      const [, quiet] = await pass(quietMs)
      const quiet99 = readingsOf("quiet: ordinary requests, 99th percentile", "ms", [quiet.p99])
      found.push(figureOf(quiet99))
      const silent = chat(gateway, `fake:${JSON.stringify({ prefillMs: 60_000, tokens: 1 })}`)
      const upload = slowUpload(gateway, 45)
      for (const { args, name } of kinds) {
        const [said, seen] = await during(gateway, attack(args(baseOf(gateway))))
        const during99 = readingsOf(`${name}: their 99th percentile`, "ms", [seen.p99])
        const available = /service available:[^\n]{0,40}YES/i.test(said)
        found.push(
          figure(
            `${name}: service available to slowhttptest at the end`,
            "",
            [available ? 1 : 0],
            atLeast(1),
          ),
          figure(
            `${name}: ordinary requests that failed, of ${seen.count + seen.failures}`,
            "",
            [seen.failures],
            atMost(0),
          ),
          figureOf(during99),
          ratioTo(during99, quiet99, atMost(2)),
        )
      }
      found.push(
        figure(
          "upload of 4 KB a second for 45 s: answered 200",
          "",
          [(await upload) === 200 ? 1 : 0],
          atLeastOne,
        ),
        figure(
          "a model silent for 60 s: answered 200",
          "",
          [(await silent).status === 200 ? 1 : 0],
          atLeastOne,
        ),
      )
      return found
    })
    return {
      title: `Slow clients: slowhttptest with ${connections} connections, ${attackSeconds} s each kind`,
      method:
        "Fake engine. Ordinary chat requests every 20 ms; the slow upload and the silent " +
        "model run beside the attacks, which run at the lowest priority. slowhttptest must be installed.",
      figures,
    }
  })
