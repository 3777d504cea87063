// Recordings of the one who measures: speech of people, or sounds without speech. Nothing of them is kept.

import { execFileSync } from "node:child_process"
import { readdirSync } from "node:fs"
import { join } from "node:path"
import { figure, type Part } from "#harness/report/Figure.ts"
import { audible } from "./Clips.ts"
import { hear } from "./Hearing.ts"
import { rateHz } from "./Sounds.ts"
import { speech } from "./Speech.ts"

export interface Folders {
  /** Each file is something that one person says. */
  readonly speech: string | undefined
  /** Music and noises. */
  readonly sounds: string | undefined
}

/** Files whose names end so are recordings. */
const endings = /\.(wav|ogg|opus|oga|flac|mp3|m4a|g722)$/
/** Shorter ones are single sounds, longer ones many sentences. */
const leastSeconds = 0.25
const mostSeconds = 12
const soundSeconds = 5

const filesIn = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => endings.test(name))
    .sort()
    .map((name) => join(folder, name))

/** 16 kHz mono, by ffmpeg, which knows more formats than the product does. */
const decoded = (path: string): Int16Array => {
  // Raw G.722 has no header by which it could be known.
  const input = path.endsWith(".g722") ? ["-f", "g722"] : []
  const output = ["-ac", "1", "-ar", String(rateHz), "-f", "s16le", "-"]
  const bytes = execFileSync("ffmpeg", ["-v", "error", ...input, "-i", path, ...output], {
    maxBuffer: 1024 ** 3,
  })
  return new Int16Array(
    bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length - (bytes.length % 2)),
  )
}

/** So many of them, evenly spread. */
const some = <A>(all: ReadonlyArray<A>, count: number): ReadonlyArray<A> =>
  all.length <= count
    ? all
    : Array.from({ length: count }, (_, i) => all[Math.floor((i * all.length) / count)]!)

const people = (folder: string, count: number, seed: number): Part => {
  const files = some(filesIn(folder), 2 * count)
  const lasts = ({ length }: Float32Array) =>
    length >= leastSeconds * rateHz && length <= mostSeconds * rateHz
  const all = some(files.map(decoded).map(audible).filter(lasts), count)
  return speech({ title: "Recorded speech", what: "recordings of people", all }, all.length, seed)
}

const sounds = (folder: string, count: number): Part => {
  const length = soundSeconds * rateHz
  const all = filesIn(folder).flatMap((path) => {
    const whole = decoded(path)
    return Array.from({ length: Math.ceil(whole.length / length) }, (_, i) =>
      whole.subarray(i * length, (i + 1) * length),
    )
  })
  const clips = some(all, count)
  const found = clips.filter((clip) => hear(clip, 500).foundMs !== undefined).length
  return {
    title: "Recorded sounds",
    method: `${clips.length} clips of up to ${soundSeconds} s of recordings, as loud as they are.`,
    figures: [figure("taken for speech", `of ${clips.length}`, [found])],
  }
}

export const recorded = (folders: Folders, count: number, seed: number): ReadonlyArray<Part> => [
  ...(folders.speech === undefined ? [] : [people(folders.speech, count, seed)]),
  ...(folders.sounds === undefined ? [] : [sounds(folders.sounds, count)]),
]
