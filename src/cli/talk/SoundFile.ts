// Where `edgewise talk` writes what its loudspeaker plays: a WAV file, or raw samples on standard output.
import { closeSync, openSync, writeSync } from "node:fs"
import { s16ToBytes } from "#domain/audio/Audio.ts"
import { wavOf } from "#harness/data/Clip.ts"

const rateHz = 24_000

export interface SoundFile {
  /** s16, 24 kHz */
  readonly write: (samples: Int16Array) => void
  readonly close: () => void
}

/** Bytes that wait for a reader of standard output, at most: half a minute. */
const mostWaitingBytes = 2 * 2 ** 20

/** @param onFailure the reader of the pipe is gone, or does not read */
export const soundPipe = (output: NodeJS.WriteStream, onFailure: (why: string) => void): SoundFile => {
  let isOver = false
  const fail = (why: string) => {
    if (!isOver) onFailure(why)
    isOver = true
  }
  output.on("error", () => fail("the reader of the sound has closed the pipe"))
  return {
    write: (samples) => {
      if (isOver) return
      if (output.writableLength > mostWaitingBytes) return fail("the reader of the sound does not read")
      output.write(s16ToBytes(samples))
    },
    close: () => {
      isOver = true
    },
  }
}

/** @throws if the file cannot be written */
export const soundFile = (path: string): SoundFile => {
  const file = openSync(path, "w")
  let samples = 0
  writeSync(file, wavOf(new Int16Array(0), rateHz))
  return {
    write: (more) => {
      writeSync(file, s16ToBytes(more))
      samples += more.length
    },
    close: () => {
      // The header's two lengths.
      const size = Buffer.alloc(4)
      size.writeUInt32LE(36 + 2 * samples)
      writeSync(file, size, 0, 4, 4)
      size.writeUInt32LE(2 * samples)
      writeSync(file, size, 0, 4, 40)
      closeSync(file)
    },
  }
}
