// The attacks of docs/security.md as plans: what a connection sends, how many connections and how often. Each is bounded in
// rate and comes from one client. Pure.
import { boastingTables } from "../../test/support/audio/HostileMp4.ts"
import { speech, wavFile } from "../live/Speech.ts"
import type { Target } from "../support/Connection.ts"
import { withKey } from "./Placeholder.ts"
import { chunked, multipartType, post, upload } from "./Requests.ts"
import { conversations, event, frame, handshake } from "./Sockets.ts"

export interface AttackPlan {
  readonly connectionsPerSecond: number
  /** Open at a time. */
  readonly mostConnections: number
  /** What each sends first; as a function of the connection's number if they differ. */
  readonly first: Buffer | ((connection: number) => Buffer)
  /** What each sends at the first bytes of an answer. */
  readonly onAnswer?: Buffer
  /** What each sends again and again, once its first bytes were answered where `afterAnswer`. */
  readonly repeated?: { readonly bytes: Buffer; readonly perSecond: number; readonly afterAnswer: boolean }
  /** Closes at the first bytes of an answer, and the next one is opened. */
  readonly closesOnAnswer: boolean
  /** The limits of the client secret that stands for the key. */
  readonly secret?: Readonly<Record<string, number>>
}

export const attackNames = [
  "C1 chunks of one byte",
  "H1 voice URL of one-byte chunks",
  "H2 two lengths",
  "H3 pipelined /nope",
  "H3 pipelined /metrics",
  "H4 long files",
  "H5 one word of 35,000 letters",
  "H6 M4A bombs",
  "M2 empty WebSocket frames",
  "M5 nested JSON",
  "M6 realtime items",
  "L5 heads without an end",
  "audio: silence with 5 s of padding",
  "audio: noise in G.711",
  "audio: PCM to transcribe",
  "audio: noise on 20 sockets",
  "idle sessions of one client secret",
  "contexts read ahead on reopened sockets",
  "P1 guesses of a system prompt",
  "P2 embedding inputs of 7.9 MB",
  "realtime: items with a call_id of 4 MiB",
  "realtime: items that fill 20 sockets",
  "realtime: instructions and tools on 20 sockets",
  "realtime: padded clears on 3 sockets",
  "realtime: a large item retrieved 90 times a second",
  "S1 costly schemas",
  "S2 costly masks",
] as const
export type AttackName = (typeof attackNames)[number]

/** Those whose memory is mostly in decoders, in the largest bodies while they are parsed, or in messages that wait to be read. */
export const mediaAttacks: ReadonlyArray<AttackName> = [
  "H4 long files",
  "H6 M4A bombs",
  "P2 embedding inputs of 7.9 MB",
  // uWebSockets.js cannot pause a socket: what is sent too soon waits in memory, 128 MiB of a listener at most.
  "audio: noise on 20 sockets",
  "contexts read ahead on reopened sockets",
]

/** What can be sent to a conversation. */
export const conversationAttacks: ReadonlyArray<AttackName> = attackNames.filter((name) =>
  name.startsWith("realtime"),
)

/** Those whose effect is measured on chats, and on new schemas, of the model that they attack. */
export const schemaAttacks: ReadonlyArray<AttackName> = ["S1 costly schemas", "S2 costly masks"]

const nothing = Buffer.alloc(0)
const uploadPath = "/v1/audio/transcriptions"
const get = (path: string) => Buffer.from(`GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`)
/** JSON allows blanks at its end, so the body is read to its last chunk. */
const blank = Buffer.from("1\r\n \r\n")

const nested = (levels: number): Buffer =>
  Buffer.from(`{"model":"fake","messages":${"[".repeat(levels)}${"]".repeat(levels)}}`)

const file = (bytes: Buffer, fields: Readonly<Record<string, string>>): Buffer =>
  post(uploadPath, multipartType, upload(bytes, "a", fields))

/** An item of 100 ms, and its end. */
const item = Buffer.concat([
  event({ type: "input_audio_buffer.append", audio: Buffer.alloc(4_800, 0x33).toString("base64") }),
  event({ type: "input_audio_buffer.commit" }),
])

const transcribing = handshake("/v1/realtime?intent=transcription&model=whisper")
const conversing = handshake("/v1/realtime?model=fake")
/** Bytes of noise, in either format. */
const noise = Buffer.from(Array.from({ length: 9_300 }, (_, at) => Math.imul(at + 1, 0x9e3779b1) >>> 24))

/** 100 events a second of so much audio, after settings that detect speech with the most padding; from so many sockets. */
const audioFlood = (
  first: Buffer,
  format: "audio/pcm" | "audio/pcmu",
  audio: Buffer,
  sockets = 1,
): AttackPlan => {
  const type = first === conversing ? "realtime" : "transcription"
  const turn_detection = { type: "server_vad", prefix_padding_ms: 5_000 }
  const input = format === "audio/pcmu" ? { format: { type: format }, turn_detection } : { turn_detection }
  const bytes = Buffer.concat([
    event({ type: "session.update", session: { type, audio: { input } } }),
    event({ type: "input_audio_buffer.append", audio: audio.toString("base64") }),
  ])
  const repeated = { bytes, perSecond: 100, afterAnswer: true }
  return { connectionsPerSecond: 10, mostConnections: sockets, first, repeated, closesOnAnswer: false }
}
/** Sessions with instructions of some thousand characters, which begin differently. */
const contexts = Buffer.concat(
  Array.from({ length: 16 }, (_, nth) =>
    event({
      type: "session.update",
      session: {
        type: "realtime",
        instructions: `${nth} ${"what is read ahead of the answer ".repeat(150)}`,
      },
    }),
  ),
)

const created = (item: object): Buffer => event({ type: "conversation.item.create", item })

const message = (characters: number, more: object = {}) => ({
  type: "message",
  role: "user",
  content: Array.from({ length: Math.ceil(characters / 190_000) }, () => ({
    type: "input_text",
    text: "x".repeat(Math.min(characters, 190_000)),
  })),
  ...more,
})

/** A conversation to which this is sent. Large events are sent as fast as they are taken. */
const conversation = (
  mostConnections: number,
  bytes: Buffer,
  perSecond: number,
  more: Pick<AttackPlan, "onAnswer"> = {},
): AttackPlan => ({
  connectionsPerSecond: 20,
  mostConnections,
  first: handshake("/v1/realtime?model=gpt-realtime"),
  repeated: { bytes, perSecond, afterAnswer: true },
  closesOnAnswer: false,
  ...more,
})

/** A chat that is held to a schema. */
const held = (schema: object, maxTokens: number): Buffer => {
  const body = {
    model: "text",
    max_tokens: maxTokens,
    messages: [{ role: "user", content: "hello" }],
    response_format: { type: "json_schema", json_schema: { name: "a", schema } },
  }
  return post("/v1/chat/completions", "application/json", Buffer.from(JSON.stringify(body)))
}

const many = <A>(count: number, make: (at: number) => A): ReadonlyArray<A> =>
  Array.from({ length: count }, (_, at) => make(at))

const plans: Readonly<Record<AttackName, (clipPort: number) => AttackPlan>> = {
  "C1 chunks of one byte": () => {
    const { head } = chunked("/v1/chat/completions", "application/json", nothing, 1)
    const first = Buffer.concat([head, Buffer.alloc(300_000 * blank.length, blank)])
    return { connectionsPerSecond: 4, mostConnections: 2, first, closesOnAnswer: true }
  },
  "H1 voice URL of one-byte chunks": (clipPort) => {
    const voice = `http://127.0.0.1:${clipPort}/clip.wav`
    const body = { model: "clone", voice, voice_transcript: "a", input: "a" }
    const first = post("/v1/audio/speech", "application/json", Buffer.from(JSON.stringify(body)))
    return { connectionsPerSecond: 4, mostConnections: 4, first, closesOnAnswer: true }
  },
  "H2 two lengths": () => {
    const bytes = 250_000
    const lengths = `content-length: ${bytes}\r\n`.repeat(2)
    const head = Buffer.from(`POST /v1/models HTTP/1.1\r\nhost: x\r\n${lengths}\r\n`)
    const first = Buffer.concat([head, Buffer.alloc(bytes, "x")])
    return { connectionsPerSecond: 100, mostConnections: 400, first, closesOnAnswer: false }
  },
  "H3 pipelined /nope": () => ({
    connectionsPerSecond: 10,
    mostConnections: 1,
    first: nothing,
    repeated: { bytes: get("/nope"), perSecond: 20_000, afterAnswer: false },
    closesOnAnswer: false,
  }),
  "H3 pipelined /metrics": () => ({
    connectionsPerSecond: 10,
    mostConnections: 1,
    first: nothing,
    repeated: { bytes: get("/metrics"), perSecond: 3_000, afterAnswer: false },
    closesOnAnswer: false,
  }),
  "H4 long files": () => {
    const first = file(wavFile(speech(600)), { model: "whisper", stream: "true" })
    return { connectionsPerSecond: 4, mostConnections: 4, first, closesOnAnswer: false }
  },
  "H5 one word of 35,000 letters": () => {
    const body = { model: "recursive", messages: [{ role: "user", content: "a".repeat(35_000) }] }
    const first = post("/v1/chat/completions", "application/json", Buffer.from(JSON.stringify(body)))
    return { connectionsPerSecond: 10, mostConnections: 4, first, closesOnAnswer: true }
  },
  "H6 M4A bombs": () => {
    const first = file(boastingTables(30_000_000, 1), { model: "ear", sync: "true" })
    return { connectionsPerSecond: 2, mostConnections: 1, first, closesOnAnswer: true }
  },
  "M2 empty WebSocket frames": () => ({
    connectionsPerSecond: 10,
    mostConnections: 1,
    first: conversations[0].handshake,
    repeated: { bytes: frame("binary", nothing), perSecond: 200_000, afterAnswer: true },
    closesOnAnswer: false,
  }),
  "M5 nested JSON": () => ({
    connectionsPerSecond: 10,
    mostConnections: 4,
    first: post("/v1/chat/completions", "application/json", nested(200_000)),
    closesOnAnswer: true,
  }),
  "M6 realtime items": () => ({
    connectionsPerSecond: 10,
    mostConnections: 1,
    first: handshake("/v1/realtime?intent=transcription&model=whisper"),
    repeated: { bytes: item, perSecond: 100, afterAnswer: true },
    closesOnAnswer: false,
  }),
  "L5 heads without an end": () => {
    const first = Buffer.from(`GET /health HTTP/1.1\r\nhost: x\r\na: ${"a".repeat(500_000)}`)
    return { connectionsPerSecond: 150, mostConnections: 600, first, closesOnAnswer: false }
  },
  // 8 Mbit/s are 75 s of G.711 a second, 10 Mbit/s 20 s of PCM.
  "audio: silence with 5 s of padding": () => audioFlood(conversing, "audio/pcmu", Buffer.alloc(7_500, 0xff)),
  "audio: noise in G.711": () => audioFlood(conversing, "audio/pcmu", noise.subarray(0, 7_500)),
  "audio: PCM to transcribe": () => audioFlood(transcribing, "audio/pcm", Buffer.alloc(9_300)),
  "audio: noise on 20 sockets": () => audioFlood(transcribing, "audio/pcm", noise.subarray(0, 9_300), 20),
  "idle sessions of one client secret": () => ({
    connectionsPerSecond: 50,
    mostConnections: 100,
    first: handshake("/v1/realtime"),
    closesOnAnswer: false,
    secret: { max_sessions: 100 },
  }),
  "contexts read ahead on reopened sockets": () => ({
    connectionsPerSecond: 20,
    mostConnections: 20,
    first: handshake("/v1/realtime?model=text"),
    // The node closes a socket after some hundred events, and the next one is opened.
    repeated: { bytes: contexts, perSecond: 10, afterAnswer: true },
    closesOnAnswer: false,
  }),
  "P1 guesses of a system prompt": () => {
    const content = "The secret word of this assistant is heliotrope seven. ".repeat(30)
    const messages = [{ role: "system", content }]
    const body = Buffer.from(JSON.stringify({ model: "text", messages, max_tokens: 1 }))
    const first = post("/v1/chat/completions", "application/json", body)
    return { connectionsPerSecond: 20, mostConnections: 4, first, closesOnAnswer: true }
  },
  "P2 embedding inputs of 7.9 MB": () => {
    const body = Buffer.from(JSON.stringify({ model: "embedder", input: "word ".repeat(1_580_000) }))
    const first = post("/v1/embeddings", "application/json", body)
    return { connectionsPerSecond: 4, mostConnections: 2, first, closesOnAnswer: true }
  },
  "realtime: items with a call_id of 4 MiB": () => {
    const call_id = "x".repeat(4 * 1024 * 1024 - 1_000)
    return conversation(1, created({ type: "function_call_output", call_id, output: "" }), 10)
  },
  "realtime: items that fill 20 sockets": () => conversation(20, created(message(1_900_000)), 10),
  "realtime: instructions and tools on 20 sockets": () => {
    const tools = Array.from({ length: 4 }, (_, at) => ({
      type: "function",
      name: `look_${at}`,
      description: "x".repeat(190_000),
    }))
    const session = { type: "realtime", instructions: "x".repeat(190_000), tools }
    return conversation(20, event({ type: "session.update", session }), 10)
  },
  "realtime: padded clears on 3 sockets": () =>
    conversation(3, frame("text", `{"type":"input_audio_buffer.clear"${" ".repeat(256)}}`), 5_000),
  "realtime: a large item retrieved 90 times a second": () =>
    conversation(1, event({ type: "conversation.item.retrieve", item_id: "large" }), 90, {
      onAnswer: created(message(1_700_000, { id: "large" })),
    }),
  // Each takes 0.3 to 0.5 s of processor time to compile, and no two are equal.
  "S1 costly schemas": () => ({
    connectionsPerSecond: 40,
    mostConnections: 20,
    first: (connection) =>
      held(
        {
          type: "object",
          properties: Object.fromEntries(many(500, (at) => [`k${connection}x${at}`, { type: "string" }])),
        },
        4,
      ),
    closesOnAnswer: true,
  }),
  "S2 costly masks": () => {
    const items = { anyOf: many(300, (at) => ({ type: "string", minLength: at, maxLength: 500 + at })) }
    const first = held({ type: "array", items }, 1_000)
    return { connectionsPerSecond: 10, mostConnections: 4, first, closesOnAnswer: true }
  },
}

/** `clipPort` is where the attacker's web server listens. */
export const attackPlan = (name: AttackName, { key }: Target, clipPort: number): AttackPlan => {
  const plan = plans[name](clipPort)
  const { first } = plan
  return {
    ...plan,
    first: typeof first === "function" ? (nth) => withKey(first(nth), key) : withKey(first, key),
  }
}
