// Changes the catalog file of a node: one process at a time, checked before it counts, and written whole or not at all.
import { existsSync } from "node:fs"
import { chmod, mkdir, open, readFile, realpath, rename, rm, stat } from "node:fs/promises"
import { basename, dirname, join } from "node:path"
import { Effect, Schema } from "effect"
import { problemOf } from "#store/files/DataDir.ts"
import { fileLock } from "#store/files/FileLock.ts"
import { BadCatalog, readCatalog } from "../CatalogFile.ts"
import { besideIt, type CatalogSettings, writtenCatalog } from "../NodeCatalog.ts"

/** The catalog cannot be changed: it cannot be written, or what was asked for does not fit its content. */
export class CatalogUnchanged extends Schema.TaggedError<CatalogUnchanged>()("CatalogUnchanged", {
  path: Schema.String,
  problem: Schema.String,
}) {
  override get message() {
    return `${this.path}: ${this.problem}`
  }
}

/** A catalog of the data directory before the first model is added. */
const fresh = `// Models that were added to those that edgewise contains: \`edgewise models add\` and \`remove\` write this file, and keep
// what you change in it. A model here takes the place of a built-in one whose id it has or names among its aliases.
{
  "models": [
  ]
}
`

const onDisk = <A>(path: string, work: () => Promise<A>) =>
  Effect.tryPromise({
    try: work,
    catch: (cause) => new CatalogUnchanged({ path, problem: problemOf(cause) }),
  })

/** The file behind a link, so that the link stays one. */
const targetOf = (path: string): Promise<string> => realpath(path).catch(() => path)

const writeDraft = async (draft: string, target: string, text: string): Promise<void> => {
  const mode = await stat(target).then(
    (info) => info.mode & 0o777,
    () => 0o600,
  )
  const file = await open(draft, "w", mode)
  try {
    await file.writeFile(text)
    await file.sync()
  } finally {
    await file.close()
  }
  await chmod(draft, mode)
}

interface CatalogEdit<E> {
  /** The new text. */
  readonly edit: (text: string) => Effect.Effect<string, E>
  /** False: only finds out whether the new text is a right catalog. */
  readonly keep: boolean
  readonly waiting?: () => void
}

/**
 * Edits the catalog. A text that is no right catalog is not written, and fails with its mistakes.
 * @returns the path of the file
 */
export const editCatalog = <E>(
  settings: CatalogSettings,
  { edit, keep, waiting = () => {} }: CatalogEdit<E>,
): Effect.Effect<string, E | BadCatalog | CatalogUnchanged> =>
  Effect.gen(function* () {
    const path = writtenCatalog(settings)
    const isAdded = path !== settings.catalog
    yield* onDisk(settings.dataDir, () => mkdir(settings.dataDir, { recursive: true, mode: 0o700 }))
    yield* Effect.mapError(
      fileLock(join(settings.dataDir, "catalog.lock"), waiting),
      (cause) => new CatalogUnchanged({ path, problem: problemOf(cause) }),
    )
    const target = yield* onDisk(path, () => targetOf(path))
    const isNew = isAdded && !existsSync(target)
    const before = isNew ? fresh : yield* onDisk(path, () => readFile(target, "utf8"))
    const after = yield* edit(before)
    // The last added model is gone. So is the file, unless it has been edited by hand.
    if (isAdded && after === fresh) {
      if (keep) yield* onDisk(path, () => rm(target, { force: true }))
      return path
    }
    const draft = join(dirname(target), `.${basename(target)}.${process.pid}.tmp`)
    yield* Effect.gen(function* () {
      yield* onDisk(path, () => writeDraft(draft, target, after))
      const terms = isAdded ? { beside: yield* besideIt(settings) } : {}
      yield* Effect.mapError(readCatalog(draft, terms), ({ lines = [], problem }) => {
        const shown = lines.map((line) => line.replaceAll(draft, path))
        return new BadCatalog({ path, problem, ...(shown.length === 0 ? {} : { lines: shown }) })
      })
      if (keep) yield* onDisk(path, () => rename(draft, target))
    }).pipe(Effect.ensuring(Effect.promise(() => rm(draft, { force: true }).catch(() => {}))))
    return path
  }).pipe(Effect.scoped)
