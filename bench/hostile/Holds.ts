// One large body or event after the other on a node that serves no other client: how long each holds the gateway's event loop.

import { Effect, type Scope } from "effect"
import { exchange } from "#harness/client/Exchange.ts"
import { openSocket, socketUrl } from "#harness/client/Socket.ts"
import { atMost, type Figure, figure, type Part } from "#harness/report/Figure.ts"
import { neverAborted, serverOf } from "../support/Ask.ts"
import type { ChildFailed } from "../support/Child.ts"
import type { Target } from "../support/Connection.ts"
import { whisper } from "./Attacks.ts"
import { models } from "./Models.ts"
import { startStage } from "./Stage.ts"

export interface HoldsPlan {
  readonly times: number
}

const mib = 1024 * 1024
const patienceMs = 10_000
/** What the collector and the engines do after an answer belongs to it. */
const settleMs = 300
const mostMs = 10

/** Sends one body; its answer may be a refusal. */
const post =
  (path: string, body: object) =>
  async (target: Target): Promise<void> => {
    const bytes = Buffer.from(typeof body === "string" ? body : JSON.stringify(body))
    const outgoing = { path, type: "application/json", body: bytes, signal: neverAborted }
    await exchange(serverOf(target, patienceMs), outgoing, { onHead: () => {}, onChunk: () => {} }).catch(
      () => {},
    )
  }

/** Sends one event to a conversation that has begun, and waits for what answers it. */
const event =
  (value: object, answers = 1) =>
  async (target: Target): Promise<void> => {
    const server = serverOf(target, patienceMs)
    let left = 1
    let wake = () => {}
    const answered = () =>
      new Promise<void>((resolve) => {
        wake = resolve
        if (left === 0) resolve()
        else setTimeout(resolve, patienceMs).unref()
      })
    const socket = await openSocket(socketUrl(server, "/v1/realtime?model=gpt-realtime"), server, () => {
      left = Math.max(0, left - 1)
      if (left === 0) wake()
    })
    await answered()
    left = answers
    socket.once("close", () => wake())
    socket.send(JSON.stringify(value))
    await answered()
    socket.terminate()
  }

const texts = (count: number, characters: number, text = "x") =>
  Array.from({ length: count }, () => ({ type: "input_text", text: text.repeat(characters / text.length) }))

const message = (content: ReadonlyArray<object>) => ({
  type: "conversation.item.create",
  item: { type: "message", role: "user", content },
})

const tool = (name: string, description: string) => ({ type: "function", name, description })

/** By what is sent. */
const sent: Readonly<Record<string, (target: Target) => Promise<void>>> = {
  "an embedding input of 7.9 MB": post("/v1/embeddings", {
    model: "embedder",
    input: "word ".repeat(1_580_000),
  }),
  "a chat with 4,096 messages": post("/v1/chat/completions", {
    model: "fake",
    messages: Array.from({ length: 4_096 }, (_, at) => ({ role: "user", content: `message ${at}` })),
  }),
  "a chat with a text of 7.9 MB": post("/v1/chat/completions", {
    model: "fake",
    messages: [{ role: "user", content: "word ".repeat(1_580_000) }],
  }),
  "a body of 50,000 objects with keys of their own": post("/v1/chat/completions", {
    model: "fake",
    messages: [],
    other: Array.from({ length: 49_000 }, (_, at) => ({ [`key${at}`]: at })),
  }),
  "an item with a call_id of 4 MiB": event({
    type: "conversation.item.create",
    item: { type: "function_call_output", call_id: "x".repeat(4 * mib - 1_000), output: "" },
  }),
  "an item of 1.9 MB": event(message(texts(10, 190_000)), 2),
  "an item of 950,000 characters of three bytes": event(message(texts(5, 190_000, "日本")), 2),
  "instructions and tools of 950 KB": event({
    type: "session.update",
    session: {
      type: "realtime",
      instructions: "x".repeat(190_000),
      tools: Array.from({ length: 4 }, (_, at) => tool(`look_${at}`, "x".repeat(190_000))),
    },
  }),
  "audio of 4 MB in base64": event({
    type: "input_audio_buffer.append",
    audio: Buffer.alloc(3_000_000).toString("base64").slice(1),
  }),
  "audio of 15 MiB in base64": event({
    type: "input_audio_buffer.append",
    audio: Buffer.alloc(11.25 * mib)
      .toString("base64")
      .slice(4, -1),
  }),
  "an event of 20 MiB": event({ type: "input_audio_buffer.append", audio: "A".repeat(20 * mib) }),
}

export const holds = ({ times }: HoldsPlan): Effect.Effect<ReadonlyArray<Part>, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const stage = yield* startStage({ models: [...models, ...whisper], idle: true, limits: "as delivered" })
    const { child, target } = stage.gateway
    const figures: Array<Figure> = []
    for (const [name, send] of Object.entries(sent)) {
      const longest: Array<number> = []
      for (let time = -1; time < times; time++) {
        yield* child.ask("watchLoop")
        yield* Effect.promise(() => send(target))
        yield* Effect.sleep(settleMs)
        const delay = yield* child.ask("loopDelay")
        // The first of each is compiled.
        if (time >= 0) longest.push(delay?.longestWork ?? Number.NaN)
      }
      figures.push(figure(name, "ms", longest, atMost(mostMs)))
    }
    return [
      {
        title:
          "One large body or event at a time: the longest turn of the gateway's event loop, processor time",
        method: `Each ${times} times and once before, on a node without other requests; between two ticks of a timer of 1 ms, with what the collector does`,
        figures,
      },
    ]
  })
