// Valid WebSocket handshakes and conversations of the three socket endpoints, as bytes: what the fuzzer mutates. Pure.
import { keyPlaceholder } from "./Placeholder.ts"

/** A handshake and the frames that follow it once it is accepted. */
interface Conversation {
  readonly handshake: Buffer
  readonly frames: Buffer
}

export const handshake = (path: string): Buffer =>
  Buffer.from(
    `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: Upgrade\r\nupgrade: websocket\r\n` +
      "sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
      "sec-websocket-extensions: permessage-deflate; client_max_window_bits\r\n" +
      `authorization: Bearer ${keyPlaceholder}\r\n\r\n`,
  )

const opcodes = { text: 1, binary: 2, close: 8, ping: 9 } as const
/** Frames are masked with this; its value is of no matter. */
const mask = Buffer.from([0x37, 0xfa, 0x21, 0x3d])

/** A whole, masked frame. */
export const frame = (kind: keyof typeof opcodes, content: string | Buffer): Buffer => {
  const payload = Buffer.from(content)
  const lengthBytes = payload.length < 126 ? 0 : payload.length < 65_536 ? 2 : 8
  const head = Buffer.alloc(2 + lengthBytes)
  head[0] = 0x80 | opcodes[kind]
  head[1] = 0x80 | (lengthBytes === 0 ? payload.length : lengthBytes === 2 ? 126 : 127)
  if (lengthBytes === 2) head.writeUInt16BE(payload.length, 2)
  if (lengthBytes === 8) head.writeBigUInt64BE(BigInt(payload.length), 2)
  return Buffer.concat([head, mask, payload.map((byte, at) => byte ^ (mask[at % 4] ?? 0))])
}

export const event = (value: unknown): Buffer => frame("text", JSON.stringify(value))
/** 20 ms of a square wave, 16-bit, 16 kHz. */
const sound = Buffer.from(Int16Array.from({ length: 320 }, (_, at) => (at % 40 < 20 ? 9_000 : -9_000)).buffer)

export const conversations: readonly [Conversation, ...ReadonlyArray<Conversation>] = [
  {
    handshake: handshake("/v1/audio/transcriptions/ws?model=ear&window_s=0.5"),
    frames: Buffer.concat([
      ...Array.from({ length: 30 }, () => frame("binary", sound)),
      frame("ping", "a"),
      event({ type: "stop" }),
    ]),
  },
  {
    handshake: handshake(`/v1/realtime?intent=transcription&token=${keyPlaceholder}`),
    frames: Buffer.concat([
      event({
        type: "session.update",
        session: {
          type: "transcription",
          audio: {
            input: {
              format: { type: "audio/pcm", rate: 24_000 },
              transcription: { model: "ear", language: "en" },
              turn_detection: { type: "server_vad", silence_duration_ms: 500 },
            },
          },
        },
      }),
      ...Array.from({ length: 8 }, () =>
        event({ type: "input_audio_buffer.append", audio: sound.toString("base64") }),
      ),
      event({ type: "input_audio_buffer.commit" }),
      event({ type: "input_audio_buffer.clear" }),
    ]),
  },
  {
    handshake: handshake("/v1/completions/ws"),
    frames: Buffer.concat([
      event({ model: "fake", prompt: "hello", request_id: "a", max_tokens: 4 }),
      event({ model: "fake", prompt: "again", request_id: 2, max_tokens: 4 }),
      event({ type: "cancel", request_id: "a" }),
      frame("ping", ""),
      frame("close", Buffer.from([0x03, 0xe8])),
    ]),
  },
]
