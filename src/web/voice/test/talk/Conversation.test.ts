// The client of a conversation, against a socket that says what the node says: whose words are shown when, and what an interruption
// sends.
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import type { Call } from "../../talk/Call.js"
import { Conversation, TalkFailure } from "../../talk/Conversation.js"

class FakeSocket {
  static readonly OPEN = 1
  static last: FakeSocket
  readyState = 0
  readonly sent: Array<Record<string, unknown>> = []
  onopen = () => {}
  onmessage = (_event: { data: string }) => {}
  onclose = (_event: { code: number; reason: string }) => {}

  constructor() {
    FakeSocket.last = this
  }

  open() {
    this.readyState = FakeSocket.OPEN
    this.onopen()
  }

  send(data: string) {
    this.sent.push(JSON.parse(data))
  }

  close(code: number) {
    this.onclose({ code, reason: "" })
  }

  says(...events: ReadonlyArray<Record<string, unknown>>) {
    for (const event of events) this.onmessage({ data: JSON.stringify(event) })
  }

  get types() {
    return this.sent.map(({ type }) => type)
  }
}

/** A player whose position the test sets. */
class FakePlayer {
  playedSeconds = 0
  pushed = 0
  isStopped = false
  isEnded = false
  finish = () => {}
  readonly finished = new Promise<void>((resolve) => {
    this.finish = resolve
  })
  push(bytes: Uint8Array) {
    this.pushed += bytes.length
  }
  end() {
    this.isEnded = true
  }
  stop() {
    this.isStopped = true
    this.finish()
  }
}

let players: Array<FakePlayer> = []
let problems: Array<string> = []
const begin = () => {
  const talk = new Conversation({
    address: { url: "ws://node" },
    session: {},
    makePlayer: () => {
      const player = new FakePlayer()
      players.push(player)
      return player
    },
    onProblem: (message) => problems.push(message),
    now: () => 0,
  })
  const socket = FakeSocket.last
  socket.open()
  return { talk, socket }
}

beforeEach(() => {
  players = []
  problems = []
  vi.stubGlobal("WebSocket", FakeSocket)
})
afterEach(() => vi.unstubAllGlobals())

const audio = Buffer.alloc(4_800).toString("base64")
const question = [
  { type: "input_audio_buffer.speech_started" },
  { type: "input_audio_buffer.speech_stopped" },
  { type: "input_audio_buffer.committed", item_id: "q" },
  { type: "conversation.item.input_audio_transcription.completed", item_id: "q", transcript: "Hello?" },
]
const answer = [
  { type: "response.created", response: { id: "r" } },
  { type: "response.output_audio_transcript.delta", item_id: "a", delta: "One ", start_time: 0.1 },
  { type: "response.output_audio_transcript.delta", item_id: "a", delta: "two ", start_time: 0.5 },
  { type: "response.output_audio_transcript.delta", item_id: "a", delta: "three.", start_time: 0.9 },
  { type: "response.output_audio.delta", item_id: "a", delta: audio },
]
const done = { type: "response.done", response: { id: "r", status: "completed", output: [{ id: "a" }] } }

it("shows the node's words as they are played, and all of them at the end", async () => {
  const { socket, talk } = begin()
  const texts = () => talk.turns.map(({ text, who }) => `${who}: ${text}`)
  expect(talk.floor).toBe("listening")
  socket.says(question[0]!)
  expect(talk.floor).toBe("user")
  socket.says(...question.slice(1))
  expect(talk.floor).toBe("thinking")
  socket.says(...answer, done)
  expect(talk.floor).toBe("node")
  expect(texts()).toEqual(["user: Hello?", "node: "])
  players[0]!.playedSeconds = 0.6
  expect(texts()).toEqual(["user: Hello?", "node: One two"])
  expect(players[0]).toMatchObject({ pushed: 4_800, isEnded: true, isStopped: false })
  players[0]!.finish()
  await players[0]!.finished
  expect(texts()).toEqual(["user: Hello?", "node: One two three."])
  expect(talk.floor).toBe("listening")
})

it("stops at speech, says how much was heard, and plays nothing that comes late", () => {
  const { socket, talk } = begin()
  socket.says(...question, ...answer)
  players[0]!.playedSeconds = 0.6
  socket.says({ type: "input_audio_buffer.speech_started" }, answer.at(-1)!)
  expect(players[0]).toMatchObject({ pushed: 4_800, isStopped: true })
  expect(socket.sent.at(-1)).toEqual({
    type: "conversation.item.truncate",
    item_id: "a",
    content_index: 0,
    audio_end_ms: 600,
  })
  expect(talk.turns.at(-1)).toMatchObject({ text: "One two", isCut: true, isOpen: false })
  expect(players.length).toBe(1)
})

it("shows no answer of which nothing was heard, and no turn of which nothing was understood", () => {
  const { socket, talk } = begin()
  socket.says(...question.slice(0, 3), { ...question[3], transcript: " " })
  expect(talk.turns).toEqual([])
  socket.says(...question, ...answer, { type: "input_audio_buffer.speech_started" })
  expect(talk.turns.map(({ who }) => who)).toEqual(["user"])
})

it("ends the answer where a turn by hand begins, and asks for one where it ends", () => {
  const { socket, talk } = begin()
  socket.says(...question, ...answer)
  talk.beginTurn()
  talk.endTurn()
  expect(socket.types).toEqual([
    "session.update",
    "response.cancel",
    "conversation.item.truncate",
    "input_audio_buffer.clear",
    "input_audio_buffer.commit",
    "response.create",
  ])
})

it("tells failures once each, and not that an answer had ended already", () => {
  const { socket } = begin()
  const error = (code: string, message: string) => ({ type: "error", error: { code, message } })
  socket.says(error("response_cancel_not_active", "none"), error("InvalidRequest", "too short"))
  const failed = { id: "r", status: "failed", output: [], status_details: { error: { message: "no voice" } } }
  socket.says({ type: "response.done", response: failed })
  expect(problems).toEqual(["too short", "no voice"])
})

it("fails where the node closes, and not where the page does", async () => {
  const first = begin()
  first.socket.onclose({ code: 1006, reason: "" })
  const failure = await first.talk.finished.catch((error: unknown) => error)
  expect(failure).toBeInstanceOf(TalkFailure)
  expect(failure).toMatchObject({ code: 1006, wasOpen: true })
  const second = begin()
  second.talk.close()
  await second.talk.finished
})

/** A conversation over a call, which is connected before it begins. */
const overCall = (now: () => number) => {
  const call = new FakeSocket()
  call.readyState = FakeSocket.OPEN
  const talk = new Conversation({
    call: call as unknown as Call,
    session: {},
    makePlayer: () => new FakePlayer(),
    onProblem: (message) => problems.push(message),
    now,
  })
  return { call, talk }
}

it("over a call: the node plays and cuts, and this side only shows it", async () => {
  let nowMs = 0
  const { call, talk } = overCall(() => nowMs)
  const texts = () => talk.turns.map(({ text, who }) => `${who}: ${text}`)
  const [created, ...words] = answer.slice(0, 4)
  const item = { type: "response.output_item.added", response_id: "r", item: { id: "a", type: "message" } }
  call.says(...question, created!, item, ...words)
  talk.hear(new Uint8Array(960))
  expect(talk.floor).toBe("thinking")
  call.says({ type: "output_audio_buffer.started", response_id: "r" })
  expect(talk.floor).toBe("node")
  nowMs = 600
  expect(texts()).toEqual(["user: Hello?", "node: One two"])
  call.says(done)
  expect(talk.floor).toBe("node")
  call.says({ type: "output_audio_buffer.stopped", response_id: "r" })
  await Promise.resolve()
  expect(texts()).toEqual(["user: Hello?", "node: One two three."])
  expect(talk.floor).toBe("listening")
  expect(call.types).toEqual(["session.update"])
})

it("over a call: an interruption clears what the node plays, and shows what it says was heard", () => {
  let nowMs = 0
  const { call, talk } = overCall(() => nowMs)
  const item = { type: "response.output_item.added", response_id: "r", item: { id: "a", type: "message" } }
  call.says(...question, answer[0]!, item, ...answer.slice(1, 4))
  call.says({ type: "output_audio_buffer.started", response_id: "r" })
  nowMs = 1_000
  talk.interrupt()
  expect(call.types).toEqual(["session.update", "response.cancel", "output_audio_buffer.clear"])
  call.says(
    { type: "output_audio_buffer.cleared", response_id: "r" },
    { type: "conversation.item.truncated", item_id: "a", content_index: 0, audio_end_ms: 700 },
  )
  expect(talk.turns.at(-1)).toMatchObject({ text: "One two", isCut: true, isOpen: false })
})
