// What a connection delivers although it has been paused: kept on disk until its reader comes to it. Owned by one
// RequestBody. The file has no name, so nothing is left behind whatever happens to this process.
//
// Writing is synchronous, because uWS takes its memory back when its callback returns and goes on reading before
// anybody else has a turn; the thread is held by that loop either way.

import { randomUUID } from "node:crypto"
import { closeSync, openSync, read, unlinkSync, writeSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"

/** One read. */
const pieceBytes = 256 * 1024

export class BodySpill {
  readonly #fd: number
  #writtenBytes = 0
  #readBytes = 0
  #reading = false
  #closed = false

  /** @throws where the system's temporary directory cannot be written */
  constructor() {
    const path = join(tmpdir(), `edgewise-${randomUUID()}`)
    this.#fd = openSync(path, "wx+", 0o600)
    unlinkSync(path)
  }

  get waitingBytes(): number {
    return this.#writtenBytes - this.#readBytes
  }

  write(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; ) {
      at += writeSync(this.#fd, bytes, at, bytes.length - at, this.#writtenBytes + at)
    }
    this.#writtenBytes += bytes.length
  }

  /** The next bytes. One read at a time; there must be something to read. */
  read(): Promise<Uint8Array> {
    this.#reading = true
    return new Promise((resolve, reject) => {
      const piece = new Uint8Array(Math.min(pieceBytes, this.waitingBytes))
      read(this.#fd, piece, 0, piece.length, this.#readBytes, (error, count) => {
        this.#reading = false
        if (this.#closed) closeSync(this.#fd)
        if (error !== null || count === 0) return reject(error ?? new Error("the file has become shorter"))
        this.#readBytes += count
        resolve(piece.subarray(0, count))
      })
    })
  }

  close(): void {
    if (this.#closed) return
    this.#closed = true
    // A number that is free would be given to the next file, and a read on its way would read that one.
    if (!this.#reading) closeSync(this.#fd)
  }
}
