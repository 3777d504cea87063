// A closed loop of the load client: connections that each send the next request once the last one was answered,
// for a fixed time. Counts answers; records no latencies.
import { Connection, postBytes, type Target } from "./Connection.ts"

export interface Loop {
  readonly target: Target
  readonly path: string
  readonly body: unknown
  readonly connections: number
  readonly forMs: number
}

export interface LoopCount {
  readonly answers: number
  readonly elapsedMs: number
}

/** Sends until `untilMs`. Fails at the first answer with another status than 200. */
const sendUntil = (connection: Connection, request: Buffer, untilMs: number): Promise<number> =>
  new Promise((resolve, reject) => {
    let answers = 0
    const send = (): void => {
      connection.send(request, (_events, atMs, ended) => {
        if (!ended) return
        const { status, tail } = connection.scanner
        if (status !== 200) return reject(new Error(`answered ${status}: ${tail}`))
        answers++
        if (atMs >= untilMs) resolve(answers)
        else send()
      })
    }
    send()
  })

export const closedLoop = async ({ body, connections, forMs, path, target }: Loop): Promise<LoopCount> => {
  const request = postBytes(target, path, body)
  const open = await Promise.all(Array.from({ length: connections }, () => Connection.open(target)))
  try {
    const startedMs = performance.now()
    const answers = await Promise.all(open.map((one) => sendUntil(one, request, startedMs + forMs)))
    return {
      answers: answers.reduce((sum, count) => sum + count, 0),
      elapsedMs: performance.now() - startedMs,
    }
  } finally {
    for (const one of open) one.close()
  }
}
