// The layout of the weights directory, and whether a file is there. A file has its final name only when it is complete
// and its sum was checked. A record beside it holds that sum, so that a start does not read gigabytes again.
import { readFile, rename, stat, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Schema } from "effect"
import { type HubFile, keptAt } from "#domain/models/HubFile.ts"

/** The directory of pulled weights inside a data directory. */
export const weightsDir = (dataDir: string): string => join(dataDir, "weights")

export const keptPath = (dir: string, file: HubFile): string => join(dir, keptAt(file))

/** Lock, note, partial file and sum lie in a separate tree, so that no file of a repository can have their names. */
export const besidePath = (dir: string, file: HubFile, what: "lock" | "note" | "part" | "sum"): string =>
  join(dir, "pull", `${keptAt(file)}.${what}`)

const Record = Schema.Struct({
  sizeBytes: Schema.Int,
  /** Lower-case hex, computed while the file was written. */
  sha256: Schema.String,
})
type WeightRecord = typeof Record.Type

const decode = Schema.decodeUnknownSync(Schema.fromJsonString(Record))

/** Written before the file gets its name, so a file without a record is unchecked. */
export const writeRecord = async (dir: string, file: HubFile, record: WeightRecord): Promise<void> => {
  const path = besidePath(dir, file, "sum")
  await writeFile(`${path}.tmp`, JSON.stringify(record))
  await rename(`${path}.tmp`, path)
}

/** The record of a file whose size matches it, and when it was written. Undefined otherwise. */
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
