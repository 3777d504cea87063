// The load client, in a process of its own so that its CPU time does not count for the server. Commands: a group
// of concurrent streams, sequential requests, and single requests. Knows no engine.

import { Latencies, type Percentiles } from "#harness/figures/Latencies.ts"
import { closedLoop, type Loop, type LoopCount } from "./ClosedLoop.ts"
import { serveCommands } from "./CommandChannel.ts"
import { Connection, postBytes, type Target } from "./Connection.ts"
import { completionTokensIn } from "./ReplyScanner.ts"

interface Load {
  readonly target: Target
  readonly path: string
  /** One list for each stream: its requests, sent one after the other and repeated. */
  readonly bodies: ReadonlyArray<ReadonlyArray<object>>
  /** Completion tokens after which a stream ends; if absent, it continues until `stop`. */
  readonly tokens?: number
}

/** What the streams did since the last `window`. Durations in milliseconds. */
export interface Window {
  readonly elapsedMs: number
  readonly events: number
  /** Times between two arrivals on one stream, without the stream's first event. */
  readonly gaps: Percentiles
  /** Times from the request to its first event, for the streams that had one. */
  readonly firstEventMs: ReadonlyArray<number>
  /** Sum over the streams that ended. */
  readonly completionTokens: number
  /** The first failure: a status other than 200 or a broken connection. */
  readonly failure: string | undefined
}

interface Once {
  readonly target: Target
  readonly path: string
  readonly body: unknown
}

interface Sequence extends Once {
  readonly count: number
  readonly withinMs: number
}

export interface OnceReply {
  readonly status: number
  readonly firstEventMs: number
  readonly elapsedMs: number
  readonly body: string
}

interface Stream {
  readonly connection: Connection
  readonly bodies: ReadonlyArray<object>
  sent: number
  sentMs: number
  /** Completion tokens so far. */
  tokens: number
  /** Time of the last arrival; undefined before the first event of a reply. */
  lastMs: number | undefined
  begun: boolean
  ended: boolean
}

class StreamGroup {
  #streams: Array<Stream> = []
  #load: Load | undefined
  readonly #gaps = new Latencies()
  #events = 0
  #firstEventMs: Array<number> = []
  #completionTokens = 0
  #failure: string | undefined
  #windowMs = 0
  #lastEndMs = 0
  #changed = () => {}

  async start(load: Load): Promise<void> {
    this.stop()
    this.#load = load
    const streams: Array<Stream> = []
    for (const bodies of load.bodies) {
      const connection = await Connection.open(load.target)
      const unsent = { sent: 0, sentMs: 0, tokens: 0, lastMs: undefined, begun: false, ended: false }
      streams.push({ connection, bodies, ...unsent })
    }
    this.#streams = streams
    this.#reset()
    for (const stream of streams) this.#send(stream, load)
  }

  /** Resolves when every stream has had an event. */
  begun(): Promise<void> {
    return this.#until(() => this.#streams.every(({ begun }) => begun))
  }

  /** Resolves when every stream has ended; the window ends with the last of them. */
  async ended(): Promise<Window> {
    await this.#until(() => this.#streams.every(({ ended }) => ended))
    return this.#close(this.#lastEndMs)
  }

  window(): Window {
    return this.#close(performance.now())
  }

  stop(): void {
    for (const { connection } of this.#streams) connection.close()
    this.#streams = []
  }

  #close(nowMs: number): Window {
    const window: Window = {
      elapsedMs: nowMs - this.#windowMs,
      events: this.#events,
      gaps: this.#gaps.percentiles,
      firstEventMs: this.#firstEventMs,
      completionTokens: this.#completionTokens,
      failure: this.#failure,
    }
    this.#reset()
    return window
  }

  #reset(): void {
    this.#gaps.reset()
    this.#events = 0
    this.#firstEventMs = []
    this.#completionTokens = 0
    this.#failure = undefined
    this.#windowMs = performance.now()
  }

  #send(stream: Stream, { path, target, tokens }: Load): void {
    const body = stream.bodies[stream.sent++ % stream.bodies.length]
    const left = tokens === undefined ? {} : { max_tokens: tokens - stream.tokens }
    stream.lastMs = undefined
    stream.sentMs = stream.connection.send(
      postBytes(target, path, { ...body, ...left }),
      (events, atMs, ended) => {
        if (events > 0) this.#arrived(stream, events, atMs)
        if (ended) this.#finished(stream, atMs)
      },
    )
  }

  #arrived(stream: Stream, events: number, atMs: number): void {
    this.#events += events
    if (stream.lastMs === undefined) {
      this.#firstEventMs.push(atMs - stream.sentMs)
      if (!stream.begun) {
        stream.begun = true
        this.#changed()
      }
    } else this.#gaps.record(atMs - stream.lastMs)
    stream.lastMs = atMs
  }

  #finished(stream: Stream, atMs: number): void {
    const { scanner } = stream.connection
    const load = this.#load
    const tokens = completionTokensIn(scanner.tail) ?? 0
    this.#lastEndMs = atMs
    this.#completionTokens += tokens
    stream.tokens += tokens
    const complete = scanner.ended && scanner.status === 200
    if (!complete) this.#failure ??= `${scanner.status} ${scanner.tail}`
    if (complete && load !== undefined && stream.tokens < (load.tokens ?? Number.POSITIVE_INFINITY)) {
      return this.#send(stream, load)
    }
    stream.ended = true
    // Do not wait for the first event of a stream that failed before it.
    stream.begun = true
    this.#changed()
  }

  #until(holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      this.#changed = () => {
        if (holds()) resolve()
      }
      this.#changed()
    })
  }
}

const group = new StreamGroup()

/** One connection for sequential requests to each target, opened at the first request, and again where the server has closed it. */
const kept = new Map<number, Connection>()

const keptConnection = async (target: Target): Promise<Connection> => {
  const before = kept.get(target.port)
  const open = before === undefined || before.closed ? await Connection.open(target) : before
  kept.set(target.port, open)
  return open
}

const exchange = (connection: Connection, request: Buffer): Promise<number> =>
  new Promise((resolve, reject) => {
    const sentMs = connection.send(request, (_events, atMs, ended) => {
      if (!ended) return
      const { status } = connection.scanner
      if (status === 200) resolve(atMs - sentMs)
      else reject(new Error(`answered ${status}: ${connection.scanner.tail}`))
    })
  })

const commands = {
  start: (load: Load): Promise<void> => group.start(load),
  begun: (): Promise<void> => group.begun(),
  ended: (): Promise<Window> => group.ended(),
  window: (): Window => group.window(),
  stop: (): void => group.stop(),

  /** Sends up to `count` requests for `withinMs`, each after the answer to the one before. Milliseconds of each. */
  sequence: async ({ body, count, path, target, withinMs }: Sequence): Promise<ReadonlyArray<number>> => {
    const request = postBytes(target, path, body)
    const latencies: Array<number> = []
    const untilMs = performance.now() + withinMs
    while (latencies.length < count && (latencies.length === 0 || performance.now() < untilMs))
      latencies.push(await exchange(await keptConnection(target), request))
    return latencies
  },

  loop: (loop: Loop): Promise<LoopCount> => closedLoop(loop),

  /** One request beside other load; its body is kept. */
  once: async ({ body, path, target }: Once): Promise<OnceReply> => {
    const pieces: Array<Buffer> = []
    const connection = await Connection.open(target, (piece) => pieces.push(Buffer.from(piece)))
    let firstEventMs = Number.NaN
    const elapsedMs = await new Promise<number>((resolve) => {
      const sentMs = connection.send(postBytes(target, path, body), (events, atMs, ended) => {
        if (events > 0 && Number.isNaN(firstEventMs)) firstEventMs = atMs - sentMs
        if (ended) resolve(atMs - sentMs)
      })
    })
    connection.close()
    const { status } = connection.scanner
    return { status, firstEventMs, elapsedMs, body: Buffer.concat(pieces).toString() }
  },
}

export type LoadClientCommands = typeof commands

serveCommands(commands)
