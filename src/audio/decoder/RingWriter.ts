// Writes decoded samples into a ring, as far as the gateway allows. Runs in the decoder process.
import { closeSync, constants, openSync, writeSync } from "node:fs"
import { stretches } from "#domain/audio/SampleRing.ts"
import type { RingRequest } from "./DecoderWire.ts"

// Created if missing; not truncated, because another decoder may have died while writing it.
const { O_CREAT, O_RDWR } = constants

/** The ring cannot be opened or written. */
export class Unwritable extends Error {
  /** The system's code, e.g. ENOSPC. */
  readonly code: string

  constructor(cause: unknown) {
    super("the ring cannot be written", { cause })
    this.code = cause instanceof Error && "code" in cause ? String(cause.code) : "unknown"
  }
}

const orUnwritable = <A>(use: () => A): A => {
  try {
    return use()
  } catch (cause) {
    throw new Unwritable(cause)
  }
}

export class RingWriter {
  readonly #request: RingRequest
  readonly #onWritten: (samples: number) => void
  readonly #file: number
  /** Index of the next sample. */
  #position = 0
  /** The first sample that may not be written yet. */
  #until: number
  #onAllowed: (() => void) | undefined

  /** @throws Unwritable */
  constructor(request: RingRequest, onWritten: (samples: number) => void) {
    this.#request = request
    this.#onWritten = onWritten
    this.#until = request.until
    this.#file = orUnwritable(() => openSync(request.path, O_RDWR | O_CREAT, 0o600))
  }

  allowUntil(until: number): void {
    this.#until = until
    const waiting = this.#onAllowed
    this.#onAllowed = undefined
    waiting?.()
  }

  /** Waits until the samples may be written. @throws Unwritable, e.g. if the disk is full */
  async write(samples: Float32Array): Promise<void> {
    const skipped = Math.max(0, Math.min(samples.length, this.#request.from - this.#position))
    this.#position += skipped
    let rest = samples.subarray(skipped)
    while (rest.length > 0) {
      const count = Math.min(rest.length, this.#until - this.#position)
      if (count <= 0) {
        await new Promise<void>((resolve) => {
          this.#onAllowed = resolve
        })
        continue
      }
      orUnwritable(() => this.#put(rest.subarray(0, count)))
      rest = rest.subarray(count)
    }
  }

  close(): void {
    closeSync(this.#file)
  }

  #put(samples: Float32Array): void {
    let bytes = new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength)
    for (const { offsetBytes, samples: count } of stretches(this.#request, this.#position, samples.length)) {
      const length = count * Float32Array.BYTES_PER_ELEMENT
      for (let at = 0; at < length; ) at += writeSync(this.#file, bytes, at, length - at, offsetBytes + at)
      bytes = bytes.subarray(length)
    }
    this.#position += samples.length
    this.#onWritten(samples.length)
  }
}
