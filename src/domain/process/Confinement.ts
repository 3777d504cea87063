// What a child process that works on a stranger's bytes may still do: a description as data. Who starts decoders and engines
// makes one, `confine/Launch` puts it in force. Pure.
import { dirname, relative } from "node:path"

/** Resources and their most, in the kernel's units (bytes, seconds, pieces). */
export interface Limits {
  /** Private writable memory, bytes. Address space would say nothing: V8 and engines reserve 12 to 22 GB of it. */
  readonly data?: number
  readonly cpuSeconds?: number
  readonly openFiles: number
  /** Size of each file it writes, bytes. */
  readonly fileBytes: number
}

/**
 * `read`: files and folders. `run`: the same, and programs may be started. `fill`: read, and write into files that are there.
 * `keep`: make, write and remove files too. `device`: read, write and control.
 */
export type Access = "read" | "run" | "fill" | "keep" | "device"

export interface Grant {
  readonly path: string
  readonly access: Access
}

export interface Confinement {
  readonly limits: Limits
  /** Everything below a path. What no grant covers cannot be opened. */
  readonly grants: ReadonlyArray<Grant>
  /** `none`: no sockets at all. `local`: Unix and netlink sockets, which drivers of GPUs may ask for. */
  readonly sockets: "none" | "local"
}

/** Whether `path` is `folder` or lies below it. Both absolute. */
export const isWithin = (folder: string, path: string): boolean => {
  const way = relative(folder, path)
  return way === "" || !(way === ".." || way.startsWith("../../"))
}

/**
 * What to read for a file of weights: its folder, because large weights are several files of which a catalog names the first.
 * The file alone where the folder is, or holds, one that must stay closed.
 */
export const weightsGrant = (file: string, closed: ReadonlyArray<string>): Grant => {
  const folder = dirname(file)
  const opens = closed.some((secret) => isWithin(folder, secret))
  return { path: opens ? file : folder, access: "read" }
}
