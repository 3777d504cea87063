// A client of /v1/audio/transcriptions/ws that sends audio at a given pace and records when each caption arrives. It runs
// in the bench's own process, which is not measured.
import WebSocket from "ws"
import { s16ToBytes } from "#domain/audio/Audio.ts"
import { type CaptionWindows, nextWindow } from "#domain/audio/Listening.ts"
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
  /** Where the next caption is due, in samples → when the frame was sent that completed the window before. */
  readonly #sentAtMs = new Map<number, number>()
  readonly #windows: CaptionWindows
  #sent = 0
  #done: { readonly text: string; readonly atMs: number } | undefined
  #closed: string | undefined
  #changed = () => {}

  private constructor(socket: WebSocket, windows: CaptionWindows) {
    this.#socket = socket
    this.#windows = windows
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

  /** @param windows seconds from one caption to the next, which are requested; or the model's chunks in samples, and nothing is requested. */
  static open({ key, port }: Target, model: string, windows: number | CaptionWindows = 1): Promise<Speaker> {
    return new Promise((resolve, reject) => {
      const requested = typeof windows === "number"
      const query = new URLSearchParams({ model, ...(requested ? { window_s: String(windows) } : {}) })
      const socket = new WebSocket(`ws://127.0.0.1:${port}/v1/audio/transcriptions/ws?${query}`, {
        headers: { authorization: `Bearer ${key}` },
        perMessageDeflate: false,
      })
      const speaker = new Speaker(socket, requested ? { samples: windows * rateHz, ahead: 0 } : windows)
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
    const next = nextWindow(to, this.#windows)
    if (!this.#sentAtMs.has(next)) this.#sentAtMs.set(next, performance.now())
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
      const sentAtMs = this.#sentAtMs.get(nextWindow((audioMs * rateHz) / 1000, this.#windows))
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
