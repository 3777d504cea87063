// The unread bytes of a request body: some deliveries in memory, and behind them the overflow that arrived in spite of
// a pause (BodySpill). Maintains the listener's count of buffered bytes. IncomingBody decides about pauses.
import type { NonEmptyReadonlyArray } from "effect/Array"
import { SmallPieces } from "#domain/queues/SmallPieces.ts"
import { BodySpill } from "../BodySpill.ts"
import type { ListenerState } from "./ListenerState.ts"

/** Deliveries from this size on get a block of their own; smaller ones share blocks. */
const blockFromBytes = 64 * 1024

type Listener = Pick<ListenerState, "blocks" | "counters" | "settings">

export class BodyBuffer {
  readonly #listener: Listener
  readonly #burstBytes: number
  #chunks: Array<Uint8Array> = []
  /** Bytes in `chunks` and `small`. */
  #bufferedBytes = 0
  /** Comes after `chunks`. */
  #small: SmallPieces | undefined
  #spill: BodySpill | undefined
  #spillFailed = false

  /** @param burstBytes bytes kept in memory before the disk is used */
  constructor(listener: Listener, burstBytes: number) {
    this.#listener = listener
    this.#burstBytes = burstBytes
  }

  /** Bytes in memory; more may be on disk. */
  get takeableBytes(): number {
    return this.#bufferedBytes
  }

  /** True if more is on disk, or on its way there, after the bytes in memory. */
  get spilled(): boolean {
    return this.#spill !== undefined
  }

  /** Copies the bytes: uWS reuses the memory when its callback returns. */
  add(bytes: Uint8Array): void {
    const { blocks } = this.#listener
    // The first delivery is always kept in memory, because its reader waits for it.
    const burst = this.#bufferedBytes + bytes.byteLength > this.#burstBytes
    if (burst && this.#bufferedBytes > 0) this.#startSpill()
    if (this.#spill !== undefined) return this.#spill.append(bytes)
    if (bytes.byteLength < blockFromBytes) {
      this.#addSmall(bytes)
    } else {
      this.#closeSmall()
      const last = this.#chunks.at(-1)
      const longer = last === undefined ? undefined : blocks.append(last, bytes)
      if (longer === undefined) this.#chunks.push(blocks.copy(bytes))
      else this.#chunks[this.#chunks.length - 1] = longer
    }
    this.#count(bytes.byteLength)
  }

  /** Most bodies are one delivery, so the first is copied alone. */
  #addSmall(bytes: Uint8Array): void {
    if (this.#small === undefined && this.#chunks.length === 0) {
      this.#small = new SmallPieces()
      this.#chunks.push(new Uint8Array(bytes))
      return
    }
    this.#small ??= new SmallPieces()
    const finished = this.#small.add(bytes)
    if (finished !== undefined) this.#chunks.push(finished)
  }

  #closeSmall(): void {
    const finished = this.#small?.take()
    if (finished !== undefined) this.#chunks.push(finished)
  }

  /** Takes about as many bytes as cause a pause, so that the bytes being read and those arriving are not both large. */
  take(): NonEmptyReadonlyArray<Uint8Array> {
    this.#closeSmall()
    let bytes = 0
    let count = 0
    while (count < this.#chunks.length && bytes < this.#listener.settings.bodyBufferBytes) {
      bytes += (this.#chunks[count++] as Uint8Array).length
    }
    this.#count(-bytes)
    return this.#chunks.splice(0, count) as unknown as NonEmptyReadonlyArray<Uint8Array>
  }

  /** The next part of the overflow, after everything before it was taken. Empty after `drop`. */
  async takeSpilled(): Promise<ReadonlyArray<Uint8Array>> {
    const spill = this.#spill
    const pieces = await spill?.next()
    if (spill?.empty === true && this.#spill === spill) this.#endSpill()
    return pieces ?? []
  }

  /** Takes everything as one array. */
  takeWhole(): Uint8Array {
    this.#closeSmall()
    const chunks = this.#chunks
    this.#count(-this.#bufferedBytes)
    this.#chunks = []
    return this.join(chunks)
  }

  /** Joins the chunks into one array. Their blocks may be reused afterwards. */
  join(chunks: ReadonlyArray<Uint8Array>): Uint8Array {
    const [first] = chunks
    if (first !== undefined && first.length < blockFromBytes && chunks.length === 1) return first
    const whole = Buffer.concat(chunks)
    this.giveBack(chunks)
    return whole
  }

  giveBack(chunks: ReadonlyArray<Uint8Array>): void {
    for (const chunk of chunks) this.#listener.blocks.giveBack(chunk)
  }

  drop(): void {
    for (const chunk of this.#chunks) this.#listener.blocks.giveBack(chunk)
    this.#count(-this.#bufferedBytes)
    this.#chunks = []
    this.#small = undefined
    this.#endSpill()
  }

  #count(changeBytes: number): void {
    this.#bufferedBytes += changeBytes
    this.#listener.counters.bodyBufferedBytes += changeBytes
  }

  /** If the disk cannot be used, the body stays in memory. */
  #startSpill(): void {
    if (this.#spill !== undefined || this.#spillFailed) return
    const { blocks, counters, settings } = this.#listener
    try {
      this.#spill = new BodySpill(settings.spillFolder, blocks, (changeBytes) => {
        counters.bodyBufferedBytes += changeBytes
      })
    } catch {
      this.#spillFailed = true
    }
  }

  #endSpill(): void {
    this.#spill?.close()
    this.#spill = undefined
  }
}
