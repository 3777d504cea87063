// The honest clients of the hostile suite, a process of their own: authenticated chat many times a second, and once a second each the
// beginning of a conversation and, where asked for, a speech request, a transcription and a live session. Counts failures and times
// the chat.
import { setTimeout as sleep } from "node:timers/promises"
import { exchangeText } from "#harness/client/Exchange.ts"
import { openSocket, socketUrl } from "#harness/client/Socket.ts"
import { Latencies, type Percentiles } from "#harness/figures/Latencies.ts"
import { NoSession, Speaker } from "../live/Speaker.ts"
import { speech, wavFile } from "../live/Speech.ts"
import { neverAborted, serverOf } from "../support/Ask.ts"
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

/** Bytes of a reply, at most: more than any of these requests is answered with. */
const mostBytes = 16 * 2 ** 20

/** One POST. Rejects for any status but 200, and for an empty reply. */
const post = async (target: Target, path: string, type: string, body: Uint8Array): Promise<void> => {
  const outgoing = { path, type, body, signal: neverAborted }
  const text = await exchangeText(serverOf(target, patienceMs), outgoing, mostBytes)
  if (text === "") throw new Error("an empty reply")
}

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
const clip = upload(wavFile(samples), "a.wav", { model: "ear", sync: "true" })
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
const conversation = async (target: Target): Promise<void> => {
  const server = serverOf(target, patienceMs)
  const begun = Promise.withResolvers<void>()
  const socket = await openSocket(socketUrl(server, "/v1/realtime?model=fake"), server, () => begun.resolve())
  const timer = setTimeout(() => begun.reject(new Error("no session")), patienceMs)
  socket.once("close", () => begun.reject(new Error("closed without an event")))
  try {
    await begun.promise
  } finally {
    clearTimeout(timer)
    socket.close()
  }
}

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
