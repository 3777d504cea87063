// The floor: uWebSockets.js with the least code that sends what the gateway sends. It collects and parses the body,
// answers with the gateway's own bytes, and advances all streams in one timer tick, as the fake engine does.
// No authentication, no validation, no engine, no accounts, no back-pressure.
import { App, type HttpResponse, us_socket_local_port } from "uWebSockets.js"
import { serveCommands } from "../support/CommandChannel.ts"
import { probe } from "../support/Probe.ts"

interface Imitation {
  /** A stream's first and every later event, byte for byte those of the gateway. */
  readonly firstEvent: string
  readonly nextEvent: string
  /** The reply to a request without `stream`. */
  readonly reply: unknown
  /** Milliseconds between two ticks. */
  readonly stepMs: number
}

/** The head that the gateway writes before a stream. */
const streamHead = [
  ["cache-control", "no-cache"],
  ["x-accel-buffering", "no"],
  ["content-type", "text/event-stream; charset=utf-8"],
  ["access-control-allow-origin", "*"],
] as const

let imitation: Imitation | undefined
const streams = new Set<HttpResponse>()
let turning = false

const turn = (): void => {
  const { nextEvent = "", stepMs = 0 } = imitation ?? {}
  for (const res of streams) res.cork(() => res.write(nextEvent))
  turning = streams.size > 0
  if (turning) setTimeout(turn, stepMs)
}

const startStream = (res: HttpResponse): void => {
  res.cork(() => {
    for (const [name, value] of streamHead) res.writeHeader(name, value)
    res.write(imitation?.firstEvent ?? "")
  })
  streams.add(res)
  if (turning) return
  turning = true
  setTimeout(turn, imitation?.stepMs ?? 0)
}

const answer = (res: HttpResponse, body: Buffer): void => {
  const request = JSON.parse(body.toString()) as { readonly stream?: boolean }
  if (request.stream === true) return startStream(res)
  res.cork(() => {
    res.writeHeader("content-type", "application/json")
    res.writeHeader("access-control-allow-origin", "*")
    res.end(JSON.stringify(imitation?.reply))
  })
}

const app = App().post("/*", (res) => {
  const pieces: Array<Buffer> = []
  res.onAborted(() => streams.delete(res))
  res.onData((piece, last) => {
    pieces.push(Buffer.from(piece.slice(0)))
    if (last) answer(res, Buffer.concat(pieces))
  })
})

const port = new Promise<number>((resolve, reject) => {
  app.listen("127.0.0.1", 0, (socket) =>
    socket === false ? reject(new Error("cannot listen")) : resolve(us_socket_local_port(socket)),
  )
})

const commands = {
  ...probe,
  port: (): Promise<number> => port,
  imitate: (next: Imitation): void => {
    imitation = next
  },
}

export type RawServerCommands = typeof commands

serveCommands(commands)
