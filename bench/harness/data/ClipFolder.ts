// Recordings with their texts: the clips that come with the program, or a folder in the form of LibriSpeech
// (speaker/chapter/ID.flac beside SPEAKER-CHAPTER.trans.txt, whose lines are an ID and what is said). Files are decoded by
// the decoder that the node uses for uploads.
import { readdirSync, readFileSync } from "node:fs"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { decodeClip } from "#audio/DecodeClip.ts"
import type { Decoder } from "#audio/Decoder.ts"
import { listenRateHz } from "#domain/audio/Audio.ts"
import { Random } from "../random/Random.ts"
import { type Clip, makeClip, type TimedText } from "./Clip.ts"
import { WrongData } from "./WrongData.ts"

/** A file that was not decoded yet. */
interface Recording {
  readonly path: string
  readonly text: string
  readonly segments?: ReadonlyArray<TimedText>
}

interface ClipSet {
  readonly name: string
  readonly clips: ReadonlyArray<Clip>
}

/** Longest recording, seconds: the longest of LibriSpeech has 35. A live session of edgewise has at most 120. */
const mostSeconds = 120
/** Files of a folder that are looked at. */
const mostFiles = 500_000

const ownFolder = fileURLToPath(new URL("./clips/", import.meta.url))

interface OwnClip {
  readonly file: string
  readonly text: string
  readonly segments: ReadonlyArray<TimedText>
}

const ownRecordings = (): ReadonlyArray<Recording> =>
  (JSON.parse(readFileSync(join(ownFolder, "clips.json"), "utf8")) as ReadonlyArray<OwnClip>).map(
    ({ file, segments, text }) => ({ path: join(ownFolder, file), text, segments }),
  )

const endings = ["flac", "wav", "ogg", "mp3", "m4a", "webm"]

/** The recordings of a LibriSpeech-shaped folder. @throws WrongData */
export const librispeech = (folder: string): ReadonlyArray<Recording> => {
  let entries: ReadonlyArray<string>
  try {
    entries = readdirSync(folder, { recursive: true, encoding: "utf8" }).slice(0, mostFiles)
  } catch (cause) {
    throw new WrongData(`${folder}: ${cause instanceof Error ? cause.message : String(cause)}`)
  }
  const files = new Set(entries)
  const found = entries
    .filter((path) => path.endsWith(".trans.txt"))
    .toSorted()
    .flatMap((path) =>
      readFileSync(join(folder, path), "utf8")
        .split(/\r?\n/)
        .flatMap((line): ReadonlyArray<Recording> => {
          const space = line.indexOf(" ")
          const text = line.slice(space + 1).trim()
          if (space < 1 || text === "") return []
          const name = join(dirname(path), line.slice(0, space))
          const ending = endings.find((each) => files.has(`${name}.${each}`))
          return ending === undefined ? [] : [{ path: join(folder, `${name}.${ending}`), text }]
        }),
    )
  if (found.length === 0) {
    throw new WrongData(
      `${folder}: no recordings; it must have speaker/chapter/*.flac beside *.trans.txt, as LibriSpeech has`,
    )
  }
  return found
}

const decoded = ({ path, segments, text }: Recording): Effect.Effect<Clip, WrongData, Decoder> =>
  decodeClip(path, { maxSeconds: mostSeconds, rateHz: listenRateHz }).pipe(
    Effect.mapError((cause) => new WrongData(`${path}: ${"detail" in cause ? cause.detail : String(cause)}`)),
    Effect.map((samples) => makeClip(basename(path).replace(/\.[^.]*$/, ""), samples, text, segments)),
  )

/**
 * @param folder undefined for the clips that come with the program
 * @param most of a folder with more, this many are drawn by the seed
 */
export const clipSet = (
  folder: string | undefined,
  most: number,
  seed: number,
): Effect.Effect<ClipSet, WrongData, Decoder> =>
  Effect.gen(function* () {
    const all = yield* Effect.try({
      try: () => (folder === undefined ? ownRecordings() : librispeech(folder)),
      catch: (cause) => (cause instanceof WrongData ? cause : new WrongData(String(cause))),
    })
    const order = all
      .map((recording, at) => ({ recording, key: new Random(seed, at).next() }))
      .toSorted((a, b) => a.key - b.key)
    const chosen = all.length <= most ? all : order.slice(0, most).map(({ recording }) => recording)
    const clips = yield* Effect.forEach(chosen, decoded, { concurrency: 2 })
    const seconds = Math.round(clips.reduce((sum, clip) => sum + clip.seconds, 0))
    const name = folder === undefined ? "edgewise's own clips (synthetic voices)" : basename(folder)
    return { name: `${name}: ${clips.length} of ${all.length}, ${seconds} s`, clips }
  })
