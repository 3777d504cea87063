// The honest clients of the hostile suite, a process of their own: authenticated chat many times a second, and once a second each the
// beginning of a conversation and, where asked for, a speech request, a transcription and a live session. Counts failures and times
// the chat.
import { Agent, request } from "node:http"
import { setTimeout as sleep } from "node:timers/promises"
import { Latencies, type Percentiles } from "#harness/figures/Latencies.ts"
import { NoSession, Speaker } from "../live/Speaker.ts"
import { speech, wavOf } from "../live/Speech.ts"
import { serveCommands } from "../support/CommandChannel.ts"
import type { Target } from "../support/Connection.ts"
import { multipartType, upload } from "./Requests.ts"

/** Whether an answer has come yet or not, the next chat is sent: a node that answers nothing for a while is seen as often. */
const chatEveryMs = 25
const othersEveryMs = 1_000
const textEveryMs = 100
const schemaEveryMs = 300
/** A request without an answer after this has failed. */
const patienceMs = 30_000
/** Requests of one client under way; one more is not sent and counts as failed. */
const mostWaiting = 400
const keptReasons = 20

export interface HonestOrder {
  readonly target: Target
  /** Which clients run beside the chat. */
  readonly others: boolean
  readonly converses: boolean
  /**
   * What a live session that is refused for lack of capacity does: fails, or tries again after its `Retry-After` for
   * `patienceMs`. Inputs of the fuzz run open live sessions too, and a machine that is busy with other work serves few.
   */
  readonly whenFull: "fail" | "try again"
}

export interface HonestSeen {
  /** Milliseconds, of the chat. */
  readonly chat: Percentiles
  /** Of chats of the model on weights, and of those with a schema that is new each time; while they are sent. */
  readonly text: Percentiles
  readonly schema: Percentiles
  /** Requests of all kinds that were answered as they should be, and those that were not. */
  readonly answered: number
  readonly failed: number
  /** Live sessions that were refused and tried again. */
  readonly refused: number
  /** Of the first failures: which client and why. */
  readonly reasons: ReadonlyArray<string>
}

/**
 * The node closes a connection that is idle for 10 s, and resets it if the next request has just arrived unread. So a client gives
 * up its idle connections earlier; 5 s is the default of Node's own agent.
 */
const idleMs = 5_000
const agent = new Agent({ keepAlive: true, maxSockets: 64, timeout: idleMs })

/** One POST. Rejects for any status but 200. */
const post = ({ key, port }: Target, path: string, contentType: string, body: Buffer): Promise<void> =>
  new Promise((resolve, reject) => {
    const outgoing = request(
      {
        agent,
        host: "127.0.0.1",
        port,
        path,
        method: "POST",
        timeout: patienceMs,
        headers: {
          authorization: `Bearer ${key}`,
          "content-type": contentType,
          "content-length": body.length,
        },
      },
      (incoming) => {
        let text = ""
        incoming.setEncoding("latin1").on("data", (more: string) => {
          if (text.length < 200) text += more.slice(0, 200)
        })
        incoming.on("error", reject)
        incoming.on("end", () => {
          if (incoming.statusCode === 200 && text.length > 0) resolve()
          else reject(new Error(`${incoming.statusCode} ${text}`))
        })
      },
    )
    outgoing.on("timeout", () => outgoing.destroy(new Error(`no answer in ${patienceMs} ms`)))
    outgoing.on("error", reject)
    outgoing.end(body)
  })

const json = (target: Target, path: string, body: unknown): Promise<void> =>
  post(target, path, "application/json", Buffer.from(JSON.stringify(body)))

const chat = (target: Target) =>
  json(target, "/v1/chat/completions", { model: "fake", messages: [{ role: "user", content: "hello" }] })

const text = (target: Target, more: object = {}) =>
  json(target, "/v1/chat/completions", {
    model: "text",
    max_tokens: 4,
    messages: [{ role: "user", content: "hello" }],
    ...more,
  })

let schemas = 0
const schema = (target: Target) => {
  const properties = { [`name${schemas++}`]: { type: "string" }, age: { type: "integer" } }
  const json_schema = { name: "a", schema: { type: "object", properties, required: Object.keys(properties) } }
  return text(target, { response_format: { type: "json_schema", json_schema } })
}

const said = (target: Target) =>
  json(target, "/v1/audio/speech", {
    model: "voice",
    voice: "fake",
    input: "Hello there.",
    response_format: "pcm",
  })

const samples = speech(1)
const clip = upload(wavOf(samples), "a.wav", { model: "ear", sync: "true" })
const transcribed = (target: Target) => post(target, "/v1/audio/transcriptions", multipartType, clip)

const transcription = async (target: Target): Promise<void> => {
  const speaker = await Speaker.open(target, "ear", 0.5)
  try {
    await speaker.speak(samples, 4)
    const { text } = await speaker.stop()
    if (text === "") throw new Error("a session without a text")
  } finally {
    speaker.close()
  }
}

/** A conversation that begins and is closed. Refused only where its organization has no place. */
const conversation = ({ key, port }: Target): Promise<void> =>
  new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/realtime?model=fake&token=${key}`)
    const end = (settle: () => void) => {
      clearTimeout(timer)
      socket.close()
      settle()
    }
    const timer = setTimeout(() => end(() => reject(new Error("no session"))), patienceMs)
    socket.addEventListener("message", () => end(resolve))
    socket.addEventListener("error", () => end(() => reject(new Error("refused"))))
  })

class Clients {
  readonly #target: Target
  readonly #latencies = { chat: new Latencies(), text: new Latencies(), schema: new Latencies() }
  readonly #timers: ReadonlyArray<NodeJS.Timeout>
  #texts: ReadonlyArray<NodeJS.Timeout> = []
  readonly #waiting = new Set<Promise<void>>()
  #answered = 0
  #failed = 0
  #refused = 0
  #reasons: Array<string> = []

  constructor({ converses, others, target, whenFull }: HonestOrder) {
    this.#target = target
    const live = whenFull === "fail" ? transcription : this.#patient(transcription)
    const each = this.#each
    this.#timers = [
      each("chat", chat, chatEveryMs),
      ...(converses ? [each("conversation", conversation, othersEveryMs)] : []),
      ...(others
        ? [
            each("speech", said, othersEveryMs),
            each("transcription", transcribed, othersEveryMs),
            each("live session", live, othersEveryMs),
          ]
        : []),
    ]
  }

  readonly #each = (name: string, call: (target: Target) => Promise<void>, everyMs: number) =>
    setInterval(() => this.#send(name, call), everyMs)

  /** Sends chats of the model on weights too, with a schema and without, or stops it. */
  texts(on: boolean): void {
    for (const timer of this.#texts) clearInterval(timer)
    this.#texts = on
      ? [this.#each("text", text, textEveryMs), this.#each("schema", schema, schemaEveryMs)]
      : []
  }

  #patient =
    (call: (target: Target) => Promise<void>) =>
    async (target: Target): Promise<void> => {
      const untilMs = performance.now() + patienceMs
      for (;;) {
        try {
          return await call(target)
        } catch (cause) {
          const waitMs = cause instanceof NoSession ? cause.retryAfterMs : undefined
          if (waitMs === undefined || performance.now() + waitMs > untilMs) throw cause
          this.#refused++
          await sleep(waitMs)
        }
      }
    }

  #send(name: string, call: (target: Target) => Promise<void>): void {
    if (this.#waiting.size >= mostWaiting) return this.#fail(name, "too many requests without an answer")
    const startedMs = performance.now()
    const sent: Promise<void> = call(this.#target)
      .then(
        () => {
          this.#answered++
          if (name === "chat" || name === "text" || name === "schema")
            this.#latencies[name].record(performance.now() - startedMs)
        },
        (cause: unknown) => this.#fail(name, cause instanceof Error ? cause.message : String(cause)),
      )
      .finally(() => this.#waiting.delete(sent))
    this.#waiting.add(sent)
  }

  #fail(name: string, reason: string): void {
    this.#failed++
    if (this.#reasons.length < keptReasons) this.#reasons.push(`${name}: ${reason}`)
  }

  take(): HonestSeen {
    const seen = {
      chat: this.#latencies.chat.percentiles,
      text: this.#latencies.text.percentiles,
      schema: this.#latencies.schema.percentiles,
      answered: this.#answered,
      failed: this.#failed,
      refused: this.#refused,
      reasons: this.#reasons,
    }
    for (const latencies of Object.values(this.#latencies)) latencies.reset()
    this.#answered = 0
    this.#failed = 0
    this.#refused = 0
    this.#reasons = []
    return seen
  }

  async stop(): Promise<void> {
    for (const timer of this.#timers) clearInterval(timer)
    this.texts(false)
    await Promise.all(this.#waiting)
  }
}

let clients: Clients | undefined

const commands = {
  start: (order: HonestOrder): void => {
    clients = new Clients(order)
  },
  texts: (on: boolean): void => clients?.texts(on),
  /** Since the last call. What is still under way counts at the next. */
  take: (): HonestSeen | undefined => clients?.take(),
  /** Sends nothing more, waits for what is under way, and gives the rest. */
  stop: async (): Promise<HonestSeen | undefined> => {
    await clients?.stop()
    return clients?.take()
  },
}

export type HonestCommands = typeof commands

serveCommands(commands)
