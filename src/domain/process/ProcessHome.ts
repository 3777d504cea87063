// The folder in which each child process of this node has a folder of its own while it runs.
import { Context } from "effect"

export interface ProcessHome {
  /**
   * Parent of the processes' own folders. If it is on the file system of the uploads, files are hard-linked into it;
   * else they are copied.
   */
  readonly folder: string
  /** True if its file system has hard links. Without them each decoder may write all of `rings`. */
  readonly links: boolean
  /** Folder of the sample rings between decoders and engines. */
  readonly rings: string | undefined
  /** Folders that no child process may read as a whole: the data directory. */
  readonly closed: ReadonlyArray<string>
}

/** Undefined: the system's temporary folder is used. */
export const CurrentProcessHome = Context.Reference<ProcessHome | undefined>("edgewise/domain/ProcessHome", {
  defaultValue: () => undefined,
})
