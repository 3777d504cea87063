// The attacks of docs/security.md as plans: what a connection sends, how many connections and how often. Each is bounded in
// rate and comes from one client. Called by the attacker. Pure.
import { boastingTables } from "../../test/support/audio/HostileMp4.ts"
import { speech, wavOf } from "../live/Speech.ts"
import type { Target } from "../support/Connection.ts"
import { withKey } from "./Placeholder.ts"
import { chunked, multipartType, post, upload } from "./Requests.ts"
import { conversations, event, frame, handshake } from "./Sockets.ts"

export interface AttackPlan {
  readonly connectionsPerSecond: number
  /** Open at a time. */
  readonly mostConnections: number
  /** What each sends first. */
  readonly first: Buffer
  /** What each sends again and again, once its first bytes were answered where `afterAnswer`. */
  readonly repeated?: { readonly bytes: Buffer; readonly perSecond: number; readonly afterAnswer: boolean }
  /** Closes at the first bytes of an answer, and makes room for the next. */
  readonly closesOnAnswer: boolean
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
] as const
export type AttackName = (typeof attackNames)[number]

/** Those whose memory is mostly in decoders. */
export const mediaAttacks: ReadonlyArray<AttackName> = ["H4 long files", "H6 M4A bombs"]

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
    const first = file(wavOf(speech(600)), { model: "whisper", stream: "true" })
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
}

/** `clipPort` is where the attacker's web server listens. */
export const attackPlan = (name: AttackName, { key }: Target, clipPort: number): AttackPlan => {
  const plan = plans[name](clipPort)
  return { ...plan, first: withKey(plan.first, key) }
}
