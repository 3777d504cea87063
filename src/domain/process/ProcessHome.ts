// Where this node's child processes live on the disk: each gets a folder of its own there, which goes with it. Set by the
// node, read where decoders and engines are started.
import { Context } from "effect"

export interface ProcessHome {
  /** Holds the processes' own folders. On the file system of the uploads, files are linked into it; else they are copied. */
  readonly folder: string
  /** Whether its file system has hard links. Without them each decoder may write all of `rings`. */
  readonly links: boolean
  /** Decoded audio on its way from decoders to engines. */
  readonly rings: string | undefined
  /** Folders that no child process may read as a whole: the data directory. */
  readonly closed: ReadonlyArray<string>
}

/** Undefined: the system's temporary folder. */
export const CurrentProcessHome = Context.Reference<ProcessHome | undefined>("edgewise/domain/ProcessHome", {
  defaultValue: () => undefined,
})
