// Reads streams of a text endpoint, one after the other, and measures the gaps between their events. A separate process, so that
// the test's own work does not delay it.
import { spawn } from "node:child_process"
import { once } from "node:events"

const program = `
const http = require("node:http")
const [, port, key, body] = process.argv
process.on("disconnect", () => process.exit(0))
let gaps = [], events = 0, failures = 0
const agent = new http.Agent({ keepAlive: true, maxSockets: 1 })
const read = () => new Promise((resolve) => {
  const failed = () => { failures++; setTimeout(resolve, 20) }
  let last
  const outgoing = http.request({ agent, port, host: "127.0.0.1", method: "POST", path: "/v1/chat/completions",
    headers: { authorization: "Bearer " + key, "content-length": Buffer.byteLength(body) } }, (incoming) => {
    if (incoming.statusCode !== 200) { incoming.resume(); return failed() }
    incoming.setEncoding("latin1").on("data", (text) => {
      const now = performance.now()
      if (last !== undefined) gaps.push(now - last)
      last = now
      events += text.split("data: ").length - 1
    })
    incoming.on("error", failed)
    incoming.on("end", resolve)
  })
  outgoing.on("error", failed)
  outgoing.end(body)
})
process.on("message", () => {
  process.send({ gaps, events, failures })
  gaps = []; events = 0; failures = 0
})
const loop = async () => { for (;;) await read() }
loop()
`

interface StreamSeen {
  readonly events: number
  readonly failures: number
  /** Milliseconds between the arrivals of parts of a stream. */
  readonly median: number
  readonly p95: number
}

export interface StreamReader {
  /** The figures since the last call. */
  readonly take: () => Promise<StreamSeen>
  readonly stop: () => Promise<unknown>
}

export const startStreamReader = (port: number, key: string, body: object): StreamReader => {
  const child = spawn(process.execPath, ["-e", program, String(port), key, JSON.stringify(body)], {
    stdio: ["ignore", "ignore", "inherit", "ipc"],
  })
  return {
    take: () =>
      new Promise((resolve) => {
        child.once("message", (message) => {
          const { events, failures, gaps } = message as {
            readonly events: number
            readonly failures: number
            readonly gaps: Array<number>
          }
          const sorted = gaps.sort((a, b) => a - b)
          const at = (share: number) => sorted[Math.floor(share * (sorted.length - 1))] ?? Number.NaN
          resolve({ events, failures, median: at(0.5), p95: at(0.95) })
        })
        child.send("take")
      }),
    stop: async () => {
      child.kill()
      await once(child, "exit")
    },
  }
}
