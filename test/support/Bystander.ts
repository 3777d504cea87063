// Somebody else's small requests while a node has other work: one after the other, timed in a process of their own, so that
// what the test itself does is not in the figures.
import { spawn } from "node:child_process"
import { once } from "node:events"

const program = `
const http = require("node:http")
const [, url, key] = process.argv
process.on("disconnect", () => process.exit(0))
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
let times = [], failures = 0, began = performance.now()
const ask = () => new Promise((resolve) => {
  began = performance.now()
  const failed = () => { failures++; resolve() }
  http.get(url, { agent, headers: { authorization: "Bearer " + key } }, (incoming) => {
    incoming.resume()
    incoming.on("error", failed)
    incoming.on("end", () => {
      if (incoming.statusCode === 200) times.push(performance.now() - began); else failures++
      resolve()
    })
  }).on("error", failed)
})
let waiting = false
const loop = async () => {
  for (;;) { waiting = true; await ask(); waiting = false; await new Promise((r) => setTimeout(r, 4)) }
}
// One that has no answer yet has waited as well.
process.on("message", () => {
  if (waiting) times.push(performance.now() - began)
  process.send({ times, failures })
  times = []
  failures = 0
})
loop()
`

export interface Waits {
  readonly count: number
  readonly failures: number
  /** Milliseconds. */
  readonly p50: number
  readonly p99: number
  readonly max: number
}

export interface Bystander {
  /** What happened since the last call. */
  readonly take: () => Promise<Waits>
  readonly stop: () => Promise<unknown>
}

interface Taken {
  readonly times: Array<number>
  readonly failures: number
}

export const startBystander = (url: string, key: string): Bystander => {
  const child = spawn(process.execPath, ["-e", program, url, key], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  })
  return {
    take: () =>
      new Promise((resolve) => {
        child.once("message", (taken) => {
          const { failures, times } = taken as Taken
          const sorted = times.sort((a, b) => a - b)
          const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN
          resolve({ count: sorted.length, failures, p50: at(0.5), p99: at(0.99), max: at(1) })
        })
        child.send("take")
      }),
    stop: async () => {
      child.kill()
      await once(child, "exit")
    },
  }
}
