// Sound that comes through a pipe: a WAV file or raw 16-bit samples, one channel, as 24 kHz for a microphone. Reads ahead by two
// seconds at most.
import type { Readable } from "node:stream"
import { Resampler } from "#audio/Resampler.ts"
import { bytesToS16 } from "#domain/audio/Audio.ts"
import { SampleQueue } from "#domain/audio/SampleQueue.ts"
import { wavLayout } from "#harness/client/AudioReply.ts"
import { RequestFailed } from "#harness/client/Failures.ts"
import type { SoundSource } from "#harness/conversation/Microphone.ts"

const rateHz = 24_000
const mostWaiting = 2 * rateHz

export class PipeSound implements SoundSource {
  readonly #input: Readable
  readonly #onFailure: (failure: RequestFailed) => void
  readonly #rawRateHz: number
  #resampler: Resampler | undefined
  #hasFormat = false
  #rest: Buffer = Buffer.alloc(0)
  readonly #waiting = new SampleQueue()
  #hasEnded = false

  /** @param rawRateHz of samples without a header */
  constructor(input: Readable, rawRateHz: number, onFailure: (failure: RequestFailed) => void) {
    this.#input = input
    this.#rawRateHz = rawRateHz
    this.#onFailure = onFailure
    input.on("data", (chunk: Buffer) => {
      try {
        this.#read(chunk)
      } catch (cause) {
        this.#fail(cause instanceof Error ? cause.message : String(cause))
      }
    })
    input.once("end", () => {
      this.#hasEnded = true
      if (!this.#hasFormat) this.#fail("it has ended before any sound")
    })
    input.once("error", (cause) => this.#fail(cause.message))
  }

  #fail(why: string): void {
    this.#hasEnded = true
    this.#input.destroy()
    this.#onFailure(new RequestFailed("wrong reply", `the sound of the pipe: ${why}`))
  }

  #read(chunk: Buffer): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    if (!this.#hasFormat) {
      const begun = this.#begin(bytes)
      if (begun === undefined) {
        this.#rest = bytes
        return
      }
      bytes = begun
    }
    const whole = bytes.length - (bytes.length % 2)
    this.#rest = Buffer.from(bytes.subarray(whole))
    const samples = bytesToS16(bytes.subarray(0, whole))
    this.#waiting.push(this.#resampler?.push(samples) ?? samples)
    if (this.#waiting.length > mostWaiting) this.#input.pause()
  }

  /** The bytes after the header; undefined while it is incomplete. */
  #begin(bytes: Buffer): Buffer | undefined {
    if (bytes.length < 12) return undefined
    const isWav = bytes.toString("latin1", 0, 4) === "RIFF"
    const found = isWav ? wavLayout(bytes) : undefined
    if (isWav && found === undefined) return undefined
    const { channels = 1, rateHz: fromHz = this.#rawRateHz } = found?.layout ?? {}
    if (channels !== 1) throw new Error(`a WAV file with ${channels} channels; it must have one`)
    if (fromHz < 8_000 || fromHz > 96_000)
      throw new Error(`${fromHz} samples a second; 8000 to 96000 are read`)
    if (fromHz !== rateHz) this.#resampler = new Resampler(fromHz, rateHz)
    this.#hasFormat = true
    return found === undefined ? bytes : bytes.subarray(found.at)
  }

  take(samples: number): Int16Array | undefined {
    if (this.#waiting.length < samples && !this.#hasEnded) return undefined
    const out = this.#waiting.take(samples)
    if (this.#waiting.length < mostWaiting / 2) this.#input.resume()
    return out
  }

  isOver(): boolean {
    return this.#hasEnded && this.#waiting.length === 0
  }
}
