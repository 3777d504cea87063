// SHA-256 sums of weight files, kept by path until the file changes: a reload of the catalog, or a load of a model, does not
// read gigabytes again that were read before. Kept in memory only, so a start reads every file once. Called by ModelFiles.
import { createHash } from "node:crypto"
import { createReadStream, type Stats } from "node:fs"
import { OldestFirst } from "#domain/OldestFirst.ts"

interface Known {
  /** Size and times of modification and change: any write gives the file another one. */
  readonly stamp: string
  readonly sha256: string
}

/** More files than catalogs have. A guess; 10,000 are about 3 MB. */
const maxKnown = 10_000

const known = new OldestFirst<Known>()

const stampOf = ({ ctimeMs, ino, mtimeMs, size }: Stats): string => `${ino} ${size} ${mtimeMs} ${ctimeMs}`

/** The sum of a file, lower-case hex. `info` is what the system says of it now. Throws where it cannot be read. */
export const sumOf = async (path: string, info: Stats): Promise<string> => {
  const stamp = stampOf(info)
  const before = known.get(path)
  if (before?.stamp === stamp) return before.sha256
  const hash = createHash("sha256")
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  const sha256 = hash.digest("hex")
  known.set(path, { stamp, sha256 })
  const oldest = known.size > maxKnown ? known.oldest() : undefined
  if (oldest !== undefined) known.delete(oldest[0])
  return sha256
}
