// The folder of one confined child process: its temporary files and the input files handed to it. Made before the
// process starts, removed after it has ended. A file is handed over as a hard link: the process sees this file but not
// the folder where all files are, and nothing is copied.
import { randomUUID } from "node:crypto"
import { mkdirSync, mkdtempSync, rmSync } from "node:fs"
import { copyFile, link, open, rm, unlink } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { ProcessHome } from "#domain/process/ProcessHome.ts"

/** Folders in the system's temporary folder that were not removed yet. */
const temporary = new Set<string>()
let isRemovedAtExit = false

/** The folder for a process of no particular node, in the system's temporary folder; removed at the latest when this process exits. */
const makeTemporary = (): string => {
  if (!isRemovedAtExit) {
    isRemovedAtExit = true
    process.once("exit", () => {
      for (const path of temporary) rmSync(path, { recursive: true, force: true })
    })
  }
  const path = mkdtempSync(join(tmpdir(), "edgewise-process-"))
  temporary.add(path)
  return path
}

const codeOf = (cause: unknown): string =>
  cause instanceof Error && "code" in cause ? String(cause.code) : "unknown"

/** The system refused the hand-over of a file. `code` is the system's error code, e.g. ENOSPC. */
export class HandOverFailed extends Error {
  readonly code: string

  constructor(cause: unknown) {
    super("a file could not be handed to its process", { cause })
    this.code = codeOf(cause)
  }
}

/** Makes a hard link, or a copy if the file system has no links or is another one. */
const linkOrCopy = async (from: string, to: string): Promise<void> => {
  try {
    await link(from, to)
  } catch (cause) {
    if (codeOf(cause) === "ENOENT") throw cause
    await copyFile(from, to)
  }
}

/** Creates an empty file if it is missing. */
const ensureFile = async (path: string): Promise<void> => (await open(path, "a", 0o600)).close()

export class ConfinedFolder {
  readonly path: string
  readonly #links: boolean
  #given: Array<string> = []
  #takenBack: Promise<unknown> = Promise.resolve()
  #count = 0

  constructor(home: ProcessHome | undefined) {
    this.path = home === undefined ? makeTemporary() : join(home.folder, randomUUID())
    this.#links = home?.links ?? true
    mkdirSync(this.path, { recursive: true, mode: 0o700 })
  }

  /**
   * Hands over a file to read.
   * @returns the path for the process
   * @throws HandOverFailed
   */
  async give(file: string): Promise<string> {
    return this.#handOver((path) => linkOrCopy(file, path))
  }

  /**
   * Hands over a file that the process writes and others read; created if missing. Without links the original path is
   * used.
   * @throws HandOverFailed
   */
  async share(file: string): Promise<string> {
    const shared = await this.#handOver(async (path) => {
      await ensureFile(file)
      if (this.#links) await link(file, path)
    })
    return this.#links ? shared : file
  }

  /** Removes all files that were handed over. Completes when none of them is in the folder any more. */
  async takeBack(): Promise<void> {
    const given = this.#given
    this.#given = []
    // Files that are already missing were removed with the folder.
    this.#takenBack = Promise.all([this.#takenBack, ...given.map((path) => unlink(path).catch(() => {}))])
    await this.#takenBack
  }

  /** What cannot be removed now is removed when a node starts. */
  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true }).then(
      () => temporary.delete(this.path),
      () => {},
    )
  }

  async #handOver(bring: (path: string) => Promise<void>): Promise<string> {
    const path = join(this.path, `file-${this.#count++}`)
    this.#given.push(path)
    try {
      await bring(path)
      return path
    } catch (cause) {
      throw new HandOverFailed(cause)
    }
  }
}
