// A client of /v1/audio/transcriptions/ws that sends audio at a given pace and records when each caption arrives. It runs
// in the bench's own process, which is not measured.
import WebSocket from "ws"
import { s16ToBytes } from "#domain/audio/Audio.ts"
import type { Target } from "../support/Connection.ts"
import { rateHz } from "./Speech.ts"

interface Caption {
  readonly audioMs: number
  readonly atMs: number
}

/** A session that was refused or ended early, with its reason. */
export class NoSession extends Error {
  /** From a refusal's `Retry-After`. */
  readonly retryAfterMs: number | undefined

  constructor(reason: string, retryAfterMs?: number) {
    super(reason)
    this.retryAfterMs = retryAfterMs
  }
}

const frameMs = 20
const frameSamples = (rateHz * frameMs) / 1000

export class Speaker {
  readonly #socket: WebSocket
  readonly captions: Array<Caption> = []
  /** Milliseconds of audio → when the frame that completed them was sent. */
  readonly #sentAtMs = new Map<number, number>()
  readonly #windowMs: number
  #sent = 0
  #done: { readonly text: string; readonly atMs: number } | undefined
  #closed: string | undefined
  #changed = () => {}

  private constructor(socket: WebSocket, windowMs: number) {
    this.#socket = socket
    this.#windowMs = windowMs
    socket.on("message", (data, isBinary) => {
      // The echo server's frames are ignored.
      if (isBinary) return
      const event = JSON.parse(String(data)) as { type: string; text: string; audio_ms: number }
      const atMs = performance.now()
      if (event.type === "transcript.text.delta") this.captions.push({ audioMs: event.audio_ms, atMs })
      else if (event.type === "transcript.text.done") this.#done = { text: event.text, atMs }
      this.#changed()
    })
    socket.on("close", (code, reason) => {
      this.#closed = `${code} ${String(reason)}`
      this.#changed()
    })
  }

  static open({ key, port }: Target, model: string, windowSeconds = 1): Promise<Speaker> {
    return new Promise((resolve, reject) => {
      const query = new URLSearchParams({ model, window_s: String(windowSeconds) })
      const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/audio/transcriptions/ws?${query}`, {
        headers: { authorization: `Bearer ${key}` },
        perMessageDeflate: false,
      })
      const speaker = new Speaker(socket, windowSeconds * 1000)
      socket.on("open", () => resolve(speaker))
      socket.on("unexpected-response", (_request, response) => {
        socket.terminate()
        const seconds = response.headers["retry-after"]
        reject(
          new NoSession(
            `refused: ${response.statusCode}`,
            seconds === undefined ? undefined : Number(seconds) * 1000,
          ),
        )
      })
      socket.on("error", (cause) => reject(new NoSession(cause.message)))
    })
  }

  /** Sends the next frames of `samples`, at most `count` of 20 ms. False at their end. */
  send(samples: Int16Array, count = 1): boolean {
    const to = Math.min(samples.length, this.#sent + count * frameSamples)
    for (; this.#sent < to; this.#sent += frameSamples) {
      this.#socket.send(s16ToBytes(samples.subarray(this.#sent, Math.min(to, this.#sent + frameSamples))))
    }
    this.#sent = to
    const sentMs = Math.floor((to * 1000) / rateHz)
    const completeMs = sentMs - (sentMs % this.#windowMs)
    if (!this.#sentAtMs.has(completeMs)) this.#sentAtMs.set(completeMs, performance.now())
    return to < samples.length
  }

  /** Sends in real time, or `speed` times faster, until the end of `samples` or of this session. */
  async speak(samples: Int16Array, speed = 1): Promise<void> {
    const perMs = (rateHz * speed) / 1000
    const startMs = performance.now() - this.#sent / perMs
    for (;;) {
      const dueMs = startMs + this.#sent / perMs
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, dueMs - performance.now())))
      if (this.#closed !== undefined || !this.#sendDue(samples, (performance.now() - startMs) * perMs)) return
    }
  }

  /** Sends all frames that are due: a late timer sends two. */
  #sendDue(samples: Int16Array, due: number): boolean {
    while (this.#sent <= due) if (!this.send(samples)) return false
    return true
  }

  /** Milliseconds from the frame that completed a window to its caption. */
  get lags(): ReadonlyArray<number> {
    return this.captions.flatMap(({ atMs, audioMs }) => {
      const sentAtMs = this.#sentAtMs.get(audioMs - (audioMs % this.#windowMs))
      return sentAtMs === undefined ? [] : [atMs - sentAtMs]
    })
  }

  async until(condition: (captions: ReadonlyArray<Caption>) => boolean): Promise<void> {
    while (!condition(this.captions)) await this.#next()
  }

  /** Sends `stop`. Returns the milliseconds until the final result, and its text. */
  async stop(): Promise<{ readonly ms: number; readonly text: string }> {
    const askedMs = performance.now()
    this.#socket.send('{"type":"stop"}')
    while (this.#done === undefined) await this.#next()
    return { ms: this.#done.atMs - askedMs, text: this.#done.text }
  }

  close(): void {
    this.#socket.terminate()
  }

  #next(): Promise<void> {
    if (this.#closed !== undefined) throw new NoSession(`closed: ${this.#closed}`)
    return new Promise((resolve) => {
      this.#changed = resolve
    })
  }
}
