// SHA-256 sums of weight files, kept by path until the file changes: a reload of the catalog, or a load of a model, does not
// read gigabytes again that were read before. Kept in memory only, so a start reads every file once. Called by WeightCheck.
import { createHash } from "node:crypto"
import { createReadStream, type Stats } from "node:fs"
import { LRUCache } from "lru-cache"

interface Known {
  /** Size and times of modification and change: any write gives the file another one. */
  readonly stamp: string
  /** Of a file that is being read, too: it is read once for all who ask meanwhile. */
  readonly sum: Promise<string>
}

/** More files than catalogs have. A guess; 10,000 are about 3 MB. */
const maxKnown = 10_000

const known = new LRUCache<string, Known>({ max: maxKnown })

const stampOf = ({ ctimeMs, ino, mtimeMs, size }: Stats): string => `${ino} ${size} ${mtimeMs} ${ctimeMs}`

const read = async (path: string): Promise<string> => {
  const hash = createHash("sha256")
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  return hash.digest("hex")
}

/** The sum of a file, lower-case hex. `info` is what the system says of it now. Rejects where it cannot be read. */
export const sumOf = (path: string, info: Stats): Promise<string> => {
  const stamp = stampOf(info)
  const before = known.get(path)
  if (before?.stamp === stamp) return before.sum
  const sum = read(path)
  known.set(path, { stamp, sum })
  // A file that could not be read is read again.
  sum.catch(() => known.delete(path))
  return sum
}
