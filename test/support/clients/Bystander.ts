// Sends another user's small requests, one after the other, while a node has other work. A separate process measures their times, so
// that the test's own work does not delay them. Every second request goes to an idle bare server, for comparison: on a machine with
// few cores most of a delay can be the wait for a core.
import { fork, spawn } from "node:child_process"
import { once } from "node:events"
import { fileURLToPath } from "node:url"

const program = `
const http = require("node:http")
const [, key, ...urls] = process.argv
process.on("disconnect", () => process.exit(0))
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
const taken = urls.map(() => ({ times: [], failures: 0 }))
let at = 0, began = performance.now()
const ask = () => new Promise((resolve) => {
  began = performance.now()
  const failed = () => { taken[at].failures++; resolve() }
  http.get(urls[at], { agent, headers: { authorization: "Bearer " + key } }, (incoming) => {
    incoming.resume()
    incoming.on("error", failed)
    incoming.on("end", () => {
      if (incoming.statusCode === 200) taken[at].times.push(performance.now() - began); else taken[at].failures++
      resolve()
    })
  }).on("error", failed)
})
let waiting = false
const loop = async () => {
  for (;; at = (at + 1) % urls.length) {
    waiting = true; await ask(); waiting = false
    await new Promise((r) => setTimeout(r, 4))
  }
}
// A request that has no answer yet counts with its wait so far.
process.on("message", () => {
  if (waiting) taken[at].times.push(performance.now() - began)
  process.send(taken)
  for (const one of taken) { one.times = []; one.failures = 0 }
})
loop()
`

interface Waits {
  readonly count: number
  readonly failures: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export interface Seen {
  readonly node: Waits
  readonly bare: Waits
}

export interface Bystander {
  /** The figures since the last call. */
  readonly take: () => Promise<Seen>
  readonly stop: () => Promise<unknown>
}

interface Taken {
  readonly times: Array<number>
  readonly failures: number
}

const waitsOf = ({ failures, times }: Taken): Waits => {
  const sorted = times.sort((a, b) => a - b)
  const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN
  return { count: sorted.length, failures, p50: at(0.5), p99: at(0.99), max: at(1) }
}

/** Requests `url` and, alternately, as many bytes from a bare server. */
export const startBystander = async (url: string, key: string): Promise<Bystander> => {
  const answer = await fetch(url, { headers: { authorization: `Bearer ${key}` } })
  const sizeBytes = (await answer.arrayBuffer()).byteLength
  const server = fork(
    fileURLToPath(new URL("../servers/bareServerMain.ts", import.meta.url)),
    [String(sizeBytes)],
    {
      execArgv: ["--disable-warning=ExperimentalWarning"],
    },
  )
  const [port] = await once(server, "message")
  const child = spawn(process.execPath, ["-e", program, key, url, `http://127.0.0.1:${port}/`], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  })
  return {
    take: () =>
      new Promise((resolve) => {
        child.once("message", (taken) => {
          const [node, bare] = taken as readonly [Taken, Taken]
          resolve({ node: waitsOf(node), bare: waitsOf(bare) })
        })
        child.send("take")
      }),
    stop: async () => {
      for (const one of [child, server]) {
        one.kill()
        await once(one, "exit")
      }
    },
  }
}
