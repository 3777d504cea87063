// Where pulled weights are kept, and whether a file is there. A file has its final name only when all of it has come and
// its sum was right; a record beside it says which sum that was, so that a start does not read gigabytes again.
// Written by PullFile, asked by CatalogFile.
import { readFile, rename, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Schema } from "effect"
import { type HubFile, keptAt } from "#domain/models/HubFile.ts"

/** The directory of pulled weights inside a data directory. */
export const weightsDir = (dataDir: string): string => join(dataDir, "weights")

export const keptPath = (dir: string, file: HubFile): string => join(dir, keptAt(file))

/** What belongs to a file lies in a tree of its own, so that no file of a repository can have its name. */
export const besidePath = (dir: string, file: HubFile, what: "lock" | "note" | "part" | "sum"): string =>
  join(dir, "pull", `${keptAt(file)}.${what}`)

const Record = Schema.Struct({
  sizeBytes: Schema.Int,
  /** Lower-case hex, computed while the file was written. */
  sha256: Schema.String,
})
export type WeightRecord = typeof Record.Type

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Record))

/** Written before the file gets its name: a file without a record is one that nobody has checked. */
export const writeRecord = async (dir: string, file: HubFile, record: WeightRecord): Promise<void> => {
  const path = besidePath(dir, file, "sum")
  await writeFile(`${path}.tmp`, JSON.stringify(record))
  await rename(`${path}.tmp`, path)
}

/** The record of a file that is there in the size that was checked, and when it was written; or undefined. */
export const pulled = async (
  dir: string,
  file: HubFile,
): Promise<(WeightRecord & { readonly modifiedMs: number }) | undefined> => {
  try {
    const text = await readFile(besidePath(dir, file, "sum"), "utf8")
    const record = decode(text)
    const info = await stat(keptPath(dir, file))
    return info.isFile() && info.size === record.sizeBytes
      ? { ...record, modifiedMs: info.mtimeMs }
      : undefined
  } catch {
    return undefined
  }
}
