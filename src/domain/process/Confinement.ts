// The rights and limits of a confined child process (a decoder or engine, which processes untrusted bytes), as data.
// `confine/Launch` enforces them. Pure.
import { relative } from "node:path"

/** Resource limits in the kernel's units (bytes, seconds, counts). */
export interface Limits {
  /**
   * Private writable memory, bytes. Not address space, of which V8 and engines reserve 12 to 22 GB without using it.
   */
  readonly data?: number
  readonly cpuSeconds?: number
  readonly openFiles: number
  /** Size of each file that it writes, bytes. */
  readonly fileBytes: number
}

/**
 * `read`: read files and folders. `run`: also start programs. `fill`: read, and write into existing files. `refill`: as
 * `fill`, and empty them first. `keep`: also create, write and remove files. `device`: read, write and control.
 */
export type Access = "read" | "run" | "fill" | "refill" | "keep" | "device"

export interface Grant {
  readonly path: string
  readonly access: Access
}

export interface Confinement {
  readonly limits: Limits
  /** Each covers everything below its path. A path without a grant cannot be opened. */
  readonly grants: ReadonlyArray<Grant>
  /**
   * `none`: no sockets at all. `local`: Unix and netlink sockets, which GPU drivers may need. `datagrams`: UDP, and netlink, which tells the
   * machine's addresses; no filter of the kernel limits the ports.
   */
  readonly sockets: "none" | "local" | "datagrams"
}

/** True if `path` is `folder` or lies below it. Both absolute. */
export const isWithin = (folder: string, path: string): boolean => {
  const way = relative(folder, path)
  return !(way === ".." || way.startsWith("../"))
}

/**
 * The right to read one file of weights, or a folder of them. Undefined for a folder that is, or contains, one that must
 * stay closed.
 */
export const weightsGrant = (path: string, closed: ReadonlyArray<string>): Grant | undefined =>
  closed.some((secret) => isWithin(path, secret)) ? undefined : { path, access: "read" }
