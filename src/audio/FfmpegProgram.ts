// Finds the machine's `ffmpeg` program and reads, once, its version and its decoders.
import { execFile } from "node:child_process"
import { accessSync, constants, realpathSync, statSync } from "node:fs"
import { join } from "node:path"
import { Effect } from "effect"
import { allowedDecoders } from "./decoder/DecodeInput.ts"

export interface FfmpegProgram {
  /** Absolute, without symbolic links. */
  readonly path: string
  /** As it names itself, e.g. `5.1.9-0+deb12u1`. */
  readonly version: string
  /** Its decoders among those that are used. */
  readonly decoders: ReadonlyArray<string>
  /** Those of them that it lacks. Files of these codecs are refused. */
  readonly missing: ReadonlyArray<string>
}

/** The oldest version on which the tests were run, by the version of its library libavformat. */
const oldest = { name: "5.1", major: 59, minor: 27 }

/** Both take 0.1 s. A guess for a machine that is busy. */
const timeoutMs = 20_000

/** What `ffmpeg -decoders` prints is 60 KB. */
const maxOutputBytes = 1024 * 1024

/** @param folders where programs are sought, in order, separated as in PATH */
const pathOf = (folders: string): string | undefined => {
  for (const folder of folders.split(":")) {
    const path = join(folder, "ffmpeg")
    try {
      if (folder === "" || !statSync(path).isFile()) continue
      accessSync(path, constants.X_OK)
      return realpathSync(path)
    } catch {
      // Not here.
    }
  }
  return undefined
}

const outputOf = (path: string, ...args: ReadonlyArray<string>) =>
  Effect.callback<string, string>((resume) => {
    const child = execFile(
      path,
      ["-nostdin", "-hide_banner", ...args],
      { env: {}, encoding: "latin1", timeout: timeoutMs, killSignal: "SIGKILL", maxBuffer: maxOutputBytes },
      (error, stdout) =>
        resume(error === null ? Effect.succeed(stdout) : Effect.fail(`${path} cannot be run`)),
    )
    return Effect.sync(() => child.kill("SIGKILL"))
  })

/** Its name for itself, or why it cannot be used. Pure. */
export const readVersion = (output: string): { readonly version: string; readonly tooOld: boolean } => {
  const version = /^ffmpeg version (\S+)/m.exec(output)?.[1] ?? "of an unknown version"
  const [, major, minor] = /^libavformat\s+(\d+)\.\s*(\d+)\./m.exec(output) ?? []
  const [has, needs] = [Number(major ?? 0), oldest.major]
  return { version, tooOld: has < needs || (has === needs && Number(minor) < oldest.minor) }
}

/** The names in the table that `ffmpeg -decoders` prints. Pure. */
export const readDecoders = (output: string): ReadonlySet<string> =>
  new Set(Array.from(output.matchAll(/^ A\S{5} (\S+)/gm), ([, name]) => name ?? ""))

/** Fails with what to install. @param folders as in PATH */
export const findFfmpeg = Effect.fnUntraced(function* (
  folders: string,
): Effect.fn.Return<FfmpegProgram, string> {
  const path = pathOf(folders)
  if (path === undefined)
    return yield* Effect.fail("no ffmpeg program was found; install it, e.g. apt-get install ffmpeg")
  const [versions, table] = yield* Effect.all([outputOf(path, "-version"), outputOf(path, "-decoders")], {
    concurrency: 2,
  })
  const { tooOld, version } = readVersion(versions)
  if (tooOld) {
    return yield* Effect.fail(`${path} ${version} is too old; install ffmpeg ${oldest.name} or newer`)
  }
  const has = readDecoders(table)
  const decoders = [...allowedDecoders].filter((name) => has.has(name))
  // Both decode MP3.
  const hasMp3 = decoders.includes("mp3") || decoders.includes("mp3float")
  const missing = [...allowedDecoders].filter(
    (name) => !has.has(name) && !(hasMp3 && (name === "mp3" || name === "mp3float")),
  )
  return { path, version, decoders, missing }
})
