// What has arrived of a request body and was not read yet: a few deliveries in memory, and behind them what came in
// spite of a pause. Owned by one RequestBody, which decides about pauses; keeps the listener's count of buffered bytes.
import type { NonEmptyReadonlyArray } from "effect/Array"
import { SmallPieces } from "#domain/queues/SmallPieces.ts"
import { BodySpill } from "../BodySpill.ts"
import type { ListenerState } from "./Exchange.ts"

/** From here on a delivery is copied into a block of its own; smaller ones share blocks. */
const blockFromBytes = 64 * 1024

type Listener = Pick<ListenerState, "blocks" | "counters" | "settings">

export class BodyBuffer {
  private readonly listener: Listener
  private readonly burstBytes: number
  private chunks: Array<Uint8Array> = []
  /** Of `chunks` and `small`. */
  private bufferedBytes = 0
  /** Behind `chunks`. */
  private small: SmallPieces | undefined
  private spill: BodySpill | undefined
  private spillFailed = false

  /** @param burstBytes what is kept in memory before the disk is used */
  constructor(listener: Listener, burstBytes: number) {
    this.listener = listener
    this.burstBytes = burstBytes
  }

  /** Bytes to be taken at once; more may be on disk. */
  get takeableBytes(): number {
    return this.bufferedBytes
  }

  /** Whether more lies on disk, or on its way there, behind what can be taken. */
  get spilled(): boolean {
    return this.spill !== undefined
  }

  /** Copies: uWS takes the memory back when its callback returns. */
  add(buffer: ArrayBuffer): void {
    const { blocks } = this.listener
    // Never the first: whoever waits for it wants to take it at once.
    const burst = this.bufferedBytes + buffer.byteLength > this.burstBytes
    if (burst && this.bufferedBytes > 0) this.startSpill()
    if (this.spill !== undefined) return this.spill.append(new Uint8Array(buffer))
    if (buffer.byteLength < blockFromBytes) {
      this.addSmall(buffer)
    } else {
      const bytes = new Uint8Array(buffer)
      this.closeSmall()
      const last = this.chunks.at(-1)
      const longer = last === undefined ? undefined : blocks.append(last, bytes)
      if (longer === undefined) this.chunks.push(blocks.copy(bytes))
      else this.chunks[this.chunks.length - 1] = longer
    }
    this.count(buffer.byteLength)
  }

  /** Most bodies are one delivery: the first one is copied as it is. */
  private addSmall(buffer: ArrayBuffer): void {
    if (this.small === undefined && this.chunks.length === 0) {
      this.small = new SmallPieces()
      this.chunks.push(new Uint8Array(buffer.slice(0)))
      return
    }
    this.small ??= new SmallPieces()
    const finished = this.small.add(new Uint8Array(buffer))
    if (finished !== undefined) this.chunks.push(finished)
  }

  private closeSmall(): void {
    const finished = this.small?.take()
    if (finished !== undefined) this.chunks.push(finished)
  }

  /** About as much as is waited for before a pause, so that what is read and what arrives are not both large. */
  take(): NonEmptyReadonlyArray<Uint8Array> {
    this.closeSmall()
    let bytes = 0
    let count = 0
    while (count < this.chunks.length && bytes < this.listener.settings.bodyBufferBytes) {
      bytes += (this.chunks[count++] as Uint8Array).length
    }
    this.count(-bytes)
    return this.chunks.splice(0, count) as unknown as NonEmptyReadonlyArray<Uint8Array>
  }

  /** The next of what was spilled, once everything before it has been taken; nothing after a `drop`. */
  async takeSpilled(): Promise<ReadonlyArray<Uint8Array>> {
    const { spill } = this
    const pieces = await spill?.next()
    if (spill?.empty === true && this.spill === spill) this.endSpill()
    return pieces ?? []
  }

  /** All of it at once, in one array. */
  takeWhole(): Uint8Array {
    this.closeSmall()
    const { chunks } = this
    this.count(-this.bufferedBytes)
    this.chunks = []
    return this.join(chunks)
  }

  /** One array over the bytes of all. The chunks themselves count no longer. */
  join(chunks: ReadonlyArray<Uint8Array>): Uint8Array {
    const [first] = chunks
    if (first !== undefined && first.length < blockFromBytes && chunks.length === 1) return first
    const whole = Buffer.concat(chunks)
    for (const chunk of chunks) this.listener.blocks.giveBack(chunk)
    return whole
  }

  drop(): void {
    for (const chunk of this.chunks) this.listener.blocks.giveBack(chunk)
    this.count(-this.bufferedBytes)
    this.chunks = []
    this.small = undefined
    this.endSpill()
  }

  private count(changeBytes: number): void {
    this.bufferedBytes += changeBytes
    this.listener.counters.bodyBufferedBytes += changeBytes
  }

  /** Where there is no disk to be had, the body waits in memory. */
  private startSpill(): void {
    if (this.spill !== undefined || this.spillFailed) return
    const { blocks, counters, settings } = this.listener
    try {
      this.spill = new BodySpill(settings.spillFolder, blocks, (changeBytes) => {
        counters.bodyBufferedBytes += changeBytes
      })
    } catch {
      this.spillFailed = true
    }
  }

  private endSpill(): void {
    this.spill?.close()
    this.spill = undefined
  }
}
