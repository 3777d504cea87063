// The clients of the transcription suite, in a process of their own: they send files and record when the answers arrive.
import { connect } from "node:net"
import { setTimeout as sleep } from "node:timers/promises"
import { RequestFailed } from "#harness/client/Failures.ts"
import { transcriptOf } from "#harness/client/TranscriptionRequest.ts"
import { type Clip, makeClip } from "#harness/data/Clip.ts"
import { neverAborted, serverOf } from "../support/Ask.ts"
import { serveCommands } from "../support/CommandChannel.ts"
import type { Target } from "../support/Connection.ts"
import { endpoint, model, spokenSamples } from "./Models.ts"

const boundary = "bench"
const before = Buffer.from(
  `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n`,
)
const after = Buffer.from(`\r\n--${boundary}--\r\n`)
const target = `${endpoint}?model=${model}&sync=true`

export interface Answer {
  readonly status: number
  readonly elapsedMs: number
}

const clips = new Map<number, Clip>()
const clipOf = (seconds: number): Clip => {
  const clip = clips.get(seconds) ?? makeClip("a", spokenSamples(seconds), "")
  clips.set(seconds, clip)
  return clip
}

/** A synchronous transcription of the first seconds of the spoken text. */
const ask = async (node: Target, seconds: number): Promise<Answer> => {
  const asked = { model, clip: clipOf(seconds), language: undefined, stream: false, fields: { sync: true } }
  try {
    const { endAtMs, sentAtMs } = await transcriptOf(serverOf(node), asked, neverAborted)
    return { status: 200, elapsedMs: endAtMs - sentAtMs }
  } catch (cause) {
    if (cause instanceof RequestFailed && /^\d+$/.test(cause.key))
      return { status: Number(cause.key), elapsedMs: Number.NaN }
    throw cause
  }
}

/** The head of an upload over a bare socket, so that the time of every byte is known. */
const headOf = ({ key }: Target, bodyBytes: number): string =>
  `POST ${target} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer ${key}\r\n` +
  `content-type: multipart/form-data; boundary=${boundary}\r\ncontent-length: ${bodyBytes}\r\n\r\n`

export interface UploadAsk {
  readonly target: Target
  readonly fileBytes: number
  /** Bytes of the file after which the client stops and waits for the answer; default: all. */
  readonly stopAfter?: number
  /** Rate of the upload; default: unlimited. */
  readonly bytesPerSecond?: number
}

const piece = Buffer.alloc(256 * 1024)

/** Uploads zeros as a file. Returns the answer's status and its time after the last byte sent. */
const upload = (asked: UploadAsk): Promise<Answer> =>
  new Promise((resolve, reject) => {
    const socket = connect({ host: "127.0.0.1", port: asked.target.port, noDelay: true })
    let sentMs = Number.NaN
    socket.on("error", reject)
    socket.on("data", (data) => {
      const status = Number(data.toString("latin1").split(" ")[1])
      resolve({ status, elapsedMs: performance.now() - sentMs })
      socket.destroy()
    })
    const write = (bytes: Uint8Array) =>
      new Promise<void>((done) => {
        sentMs = performance.now()
        socket.write(bytes, () => done())
      })
    const send = async () => {
      await write(Buffer.from(headOf(asked.target, before.length + asked.fileBytes + after.length)))
      await write(before)
      const last = asked.stopAfter ?? asked.fileBytes
      const beganMs = performance.now()
      for (let sent = 0; sent < last; sent += piece.length) {
        const dueMs = beganMs + (1000 * sent) / (asked.bytesPerSecond ?? Number.POSITIVE_INFINITY)
        if (performance.now() < dueMs) await sleep(dueMs - performance.now())
        await write(piece.subarray(0, last - sent))
      }
      if (asked.stopAfter === undefined) await write(after)
    }
    send().catch(reject)
  })

const commands = {
  /** Sends the same file again and again, one after the other. */
  hear: async (asked: { readonly target: Target; readonly seconds: number; readonly count: number }) => {
    const answers: Array<Answer> = []
    for (let i = 0; i < asked.count; i++) answers.push(await ask(asked.target, asked.seconds))
    return answers
  },

  /** Sends the same file `count` times at once. Milliseconds until the last answer, NaN if an answer was no transcript. */
  together: async (asked: { readonly target: Target; readonly seconds: number; readonly count: number }) => {
    const beganMs = performance.now()
    const answers = await Promise.all(
      Array.from({ length: asked.count }, () => ask(asked.target, asked.seconds)),
    )
    return answers.every(({ status }) => status === 200) ? performance.now() - beganMs : Number.NaN
  },

  /** Seconds of audio transcribed for each of several clients, all active for that long. */
  share: async (asked: {
    readonly target: Target
    readonly seconds: number
    readonly clients: number
    readonly forMs: number
  }): Promise<ReadonlyArray<number>> => {
    const untilMs = performance.now() + asked.forMs
    const client = async () => {
      let transcribed = 0
      while (performance.now() < untilMs) {
        const { status } = await ask(asked.target, asked.seconds)
        if (status !== 200) throw new Error(`transcription answered ${status}`)
        transcribed += asked.seconds
      }
      return transcribed
    }
    return Promise.all(Array.from({ length: asked.clients }, client))
  },

  upload,
}

export type SpeakerCommands = typeof commands

serveCommands(commands)
