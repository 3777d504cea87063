// The players of the speech suite, in a process of their own: each opens a connection, requests speech and records when
// its bytes arrive. The timeline is computed after the measurement.
import { setTimeout } from "node:timers/promises"
import { serveCommands } from "../support/CommandChannel.ts"
import { Connection, postBytes, type Target } from "../support/Connection.ts"
import { type StreamFormat, speechPath } from "./Models.ts"
import { type Arrival, type Listening, listen } from "./Timeline.ts"

interface Ask {
  readonly target: Target
  readonly format: StreamFormat
  readonly body: unknown
}

export interface Heard extends Listening {
  readonly status: number
  readonly whole: boolean
  readonly bodyBytes: number
  readonly elapsedMs: number
}

const hear = async ({ body, format, target }: Ask): Promise<Heard> => {
  const arrivals: Array<Arrival> = []
  const connection = await Connection.open(target, (piece) =>
    arrivals.push({ atMs: performance.now(), bytes: Uint8Array.from(piece) }),
  )
  const request = postBytes(target, speechPath, body)
  let sentMs = 0
  const endedMs = await new Promise<number>((resolve) => {
    sentMs = connection.send(request, (_events, atMs, ended) => {
      if (ended) resolve(atMs)
    })
  })
  const { bodyBytes, ended, status } = connection.scanner
  connection.close()
  const played = { status, whole: ended, bodyBytes, elapsedMs: endedMs - sentMs }
  const silent = status !== 200
  return { ...played, ...(await listen(format, sentMs, silent ? [] : arrivals)) }
}

/** Requests speech and disconnects at the first audio. Milliseconds until then, NaN if there was none. */
const hearBeginning = async ({ body, target }: Ask): Promise<number> => {
  let played: (atMs: number) => void = () => {}
  const firstMs = new Promise<number>((resolve) => {
    played = resolve
  })
  const connection = await Connection.open(target, () => {
    if (connection.scanner.status === 200) played(performance.now())
  })
  const sentMs = connection.send(postBytes(target, speechPath, body), (_events, _atMs, ended) => {
    if (ended) played(Number.NaN)
  })
  const atMs = await firstMs
  connection.close()
  return atMs - sentMs
}

/** Milliseconds. Longer than the native call, which cannot be stopped, so that the next player finds an idle engine. */
const restMs = 150

const commands = {
  /** All requests at once; results in the order of the requests. */
  hear: (asks: ReadonlyArray<Ask>): Promise<ReadonlyArray<Heard>> => Promise.all(asks.map(hear)),

  /** The same request repeatedly, one after the other. */
  hearInTurn: async ({ ask, count }: { readonly ask: Ask; readonly count: number }) => {
    const played: Array<Heard> = []
    for (let at = 0; at < count; at++) played.push(await hear(ask))
    return played
  },

  /** The first audio of each of several requests, interleaved: milliseconds, one row for each round. */
  beginnings: async ({ asks, count }: { readonly asks: ReadonlyArray<Ask>; readonly count: number }) => {
    const rows: Array<ReadonlyArray<number>> = []
    for (let at = 0; at < count; at++) {
      const row: Array<number> = []
      for (const ask of asks) {
        await setTimeout(restMs)
        row.push(await hearBeginning(ask))
      }
      rows.push(row)
    }
    return rows
  },
}

export type PlayerCommands = typeof commands

serveCommands(commands)
