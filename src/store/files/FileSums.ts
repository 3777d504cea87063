// SHA-256 sums of weight files, cached by path until the file changes, so that a reload of the catalog or a load of a
// model does not read gigabytes again. The cache is in memory only: after a start every file is read once.
import { createHash } from "node:crypto"
import { createReadStream, type Stats } from "node:fs"
import { LRUCache } from "lru-cache"

interface Known {
  /** Inode, size and times of the file; any write changes it. */
  readonly stamp: string
  /** Also set while the file is being read: concurrent callers share one read. */
  readonly sum: Promise<string>
}

/** Cached files, above the size of any catalog. A guess; 10,000 take about 3 MB. */
const maxKnown = 10_000

const known = new LRUCache<string, Known>({ max: maxKnown })

const stampOf = ({ ctimeMs, ino, mtimeMs, size }: Stats): string => `${ino} ${size} ${mtimeMs} ${ctimeMs}`

const read = async (path: string): Promise<string> => {
  const hash = createHash("sha256")
  for await (const chunk of createReadStream(path)) hash.update(chunk as Buffer)
  return hash.digest("hex")
}

/** The sum of a file in lower-case hex. `info` is the file's current stat. Rejects if the file cannot be read. */
export const sumOf = (path: string, info: Stats): Promise<string> => {
  const stamp = stampOf(info)
  const before = known.get(path)
  if (before?.stamp === stamp) return before.sum
  const sum = read(path)
  known.set(path, { stamp, sum })
  // A failed read is not cached.
  sum.catch(() => known.delete(path))
  return sum
}
