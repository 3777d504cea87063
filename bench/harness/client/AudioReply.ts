// The bytes of a speech reply as they arrive: raw 16-bit PCM or a WAV file, of any length that its header names. Finds
// when the first audible sample came, and how much audio was there at each moment.
import { bytesPerSample } from "#domain/audio/Audio.ts"
import type { Delivered } from "../figures/VirtualPlayer.ts"
import { RequestFailed } from "./Failures.ts"

interface Layout {
  readonly rateHz: number
  readonly channels: number
}

/** −40 dBFS: quieter samples count as silence. The level of bench/speech. */
const soundLevel = 32_768 / 100
/** Bytes in which a WAV file's samples must begin. */
const mostHeaderBytes = 64 * 2 ** 10
/** Moments that are kept, at most. */
const mostDeliveries = 200_000
const pcmFormat = 1
/** WAVE_FORMAT_EXTENSIBLE; the first two bytes of its subformat are the format. */
const extensible = 0xfffe

const ascii = (bytes: Buffer, at: number, length = 4): string => bytes.toString("latin1", at, at + length)

/** Where the samples of a WAV file begin, and their layout; undefined while the header is incomplete. */
export const wavLayout = (bytes: Buffer): { readonly at: number; readonly layout: Layout } | undefined => {
  if (bytes.length < 12) return undefined
  if (ascii(bytes, 8) !== "WAVE") throw new RequestFailed("wrong reply", "a RIFF file that is no WAV")
  let layout: Layout | undefined
  for (let at = 12; at + 8 <= bytes.length; ) {
    const name = ascii(bytes, at)
    const size = bytes.readUInt32LE(at + 4)
    if (name === "data") {
      if (layout === undefined)
        throw new RequestFailed("wrong reply", "a WAV file whose samples have no format")
      return { at: at + 8, layout }
    }
    if (name === "fmt ") {
      if (at + 24 > bytes.length || (size >= 26 && at + 34 > bytes.length)) return undefined
      const tag = bytes.readUInt16LE(at + 8)
      const format = tag === extensible && size >= 26 ? bytes.readUInt16LE(at + 32) : tag
      const bits = bytes.readUInt16LE(at + 22)
      layout = { channels: bytes.readUInt16LE(at + 10), rateHz: bytes.readUInt32LE(at + 12) }
      if (format !== pcmFormat || bits !== 16 || layout.channels === 0 || layout.rateHz === 0) {
        throw new RequestFailed(
          "wrong reply",
          `WAV of format ${format} with ${bits} bits; only 16-bit PCM is read`,
        )
      }
    }
    at += 8 + size + (size % 2)
  }
  if (bytes.length > mostHeaderBytes) throw new RequestFailed("wrong reply", "a WAV file without samples")
  return undefined
}

const startsLikeMp3 = (bytes: Buffer): boolean =>
  ascii(bytes, 0, 3) === "ID3" || (bytes[0] === 0xff && (bytes[1]! & 0xe0) === 0xe0 && bytes[1] !== 0xff)

export class AudioReply {
  readonly deliveries: Array<Delivered> = []
  firstByteMs: number | undefined
  firstSoundMs: number | undefined
  #layout: Layout | undefined
  /** Bytes before the samples, until the kind of file is known; later an incomplete sample. */
  #rest: Buffer = Buffer.alloc(0)
  #bytes = 0
  readonly #isPcm: boolean

  /** @param rateHz of raw PCM; @param isPcm whether the request asked for raw PCM */
  constructor(rateHz: number, isPcm: boolean) {
    this.#isPcm = isPcm
    this.#raw = { rateHz, channels: 1 }
  }
  readonly #raw: Layout

  /** @throws RequestFailed for another kind of file */
  read(chunk: Buffer, atMs: number): void {
    let bytes = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    if (this.#layout === undefined) {
      if (bytes.length < 4) {
        this.#rest = bytes
        return
      }
      if (ascii(bytes, 0) === "RIFF") {
        const found = wavLayout(bytes)
        if (found === undefined) {
          this.#rest = bytes
          return
        }
        this.#layout = found.layout
        bytes = bytes.subarray(found.at)
      } else if (
        ascii(bytes, 0) === "OggS" ||
        ascii(bytes, 0) === "fLaC" ||
        (!this.#isPcm && startsLikeMp3(bytes))
      ) {
        throw new RequestFailed("wrong reply", "compressed audio; the harness reads PCM and WAV (--format)")
      } else if (!this.#isPcm) {
        throw new RequestFailed("wrong reply", "neither a WAV file nor raw PCM was sent")
      } else this.#layout = this.#raw
    }
    this.#samples(bytes, this.#layout, atMs)
  }

  #samples(bytes: Buffer, { channels, rateHz }: Layout, atMs: number): void {
    const whole = bytes.length - (bytes.length % bytesPerSample)
    // Copied, because the socket's buffer would stay in memory as long as the byte.
    this.#rest = Buffer.from(bytes.subarray(whole))
    if (whole === 0) return
    this.firstByteMs ??= atMs
    if (this.firstSoundMs === undefined) {
      for (let at = 0; at < whole; at += bytesPerSample) {
        if (Math.abs(bytes.readInt16LE(at)) > soundLevel) {
          this.firstSoundMs = atMs
          break
        }
      }
    }
    this.#bytes += whole
    const audioMs = (this.#bytes * 1000) / (rateHz * channels * bytesPerSample)
    const last = this.deliveries.at(-1)
    if (last !== undefined && last.atMs === atMs) this.deliveries.pop()
    if (this.deliveries.length >= mostDeliveries)
      throw new RequestFailed("too large", "a reply without an end")
    this.deliveries.push({ atMs, audioMs })
  }
}
