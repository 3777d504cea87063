// Clients of the router in a process of their own: a number of requests a second over a few connections. Each is timed
// from the write to the kernel to the answer's last byte.

import { Latencies } from "#harness/figures/Latencies.ts"
import { serveCommands } from "../support/CommandChannel.ts"
import { Connection } from "../support/Connection.ts"

export interface Call {
  readonly port: number
  readonly perSecond: number
  readonly seconds: number
}

export interface Called {
  readonly perSecond: number
  readonly p50: number
  readonly p99: number
  readonly max: number
}

const connections = 16

const countries =
  "CA US MX FR JP BR DE IN GB AU ES IT PL SE NO FI DK NL BE CH AT PT IE CZ KR CN VN TH ZA EG AR CL"
const requests = countries
  .split(" ")
  .map((country) => Buffer.from(`GET /v1/route HTTP/1.1\r\nhost: router\r\ncf-ipcountry: ${country}\r\n\r\n`))

const call = async ({ perSecond, port, seconds }: Call): Promise<Called> => {
  const latencies = new Latencies()
  const free = await Promise.all(
    Array.from({ length: connections }, () => Connection.open({ port, key: "" })),
  )
  const all = [...free]
  const startedMs = performance.now()
  const total = perSecond * seconds
  let sent = 0
  let answered = 0
  await new Promise<void>((resolve, reject) => {
    const ask = (connection: Connection): void => {
      const sentMs = connection.send(requests[sent++ % requests.length]!, (_, atMs, ended) => {
        if (!ended) return
        if (connection.scanner.status !== 200) return reject(new Error(`${connection.scanner.status}`))
        latencies.record(atMs - sentMs)
        free.push(connection)
        if (++answered === total) resolve()
      })
    }
    const turn = (): void => {
      const due = Math.min(total, ((performance.now() - startedMs) / 1000) * perSecond)
      while (sent < due) {
        const connection = free.pop()
        // All connections wait for the router: the rate is not reached, which the findings report.
        if (connection === undefined) break
        ask(connection)
      }
      if (sent < total) setTimeout(turn, 1)
    }
    turn()
  })
  const elapsedSeconds = (performance.now() - startedMs) / 1000
  for (const connection of all) connection.close()
  const { max, p50, p99 } = latencies.percentiles
  return { perSecond: answered / elapsedSeconds, p50, p99, max }
}

serveCommands({ call })
