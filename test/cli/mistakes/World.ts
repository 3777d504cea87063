// The surroundings of an operator's mistake: a folder with a catalog, a data directory, a port in use, and, if installed,
// a Postgres server. Each mistake has its own.
import { mkdirSync, writeFileSync } from "node:fs"
import { join } from "node:path"

export interface World {
  /** The folder of this mistake; written as DIR in the lines. */
  readonly dir: string
  readonly dataDir: string
  /** A port that another program listens on; written as PORT in the lines. */
  readonly takenPort: number
  /** An empty database on a Postgres server, with its password; undefined where no Postgres is installed. */
  readonly postgresUrl: string | undefined
  /** A disk without free space; undefined where none can be mounted. */
  readonly fullDisk: string | undefined
}

export interface OperatorMistake {
  readonly category:
    | "files"
    | "catalog"
    | "settings"
    | "ports in use"
    | "disk full"
    | "memory"
    | "clock"
    | "decoder"
    | "database"
    | "weights"
    | "certificates"
  /** As it stands in the documentation. */
  readonly mistake: string
  /** Makes it: files in the world's folder, variables of the environment, and arguments, `serve` where absent. */
  readonly make: (world: World) => {
    readonly env?: Readonly<Record<string, string>>
    readonly args?: ReadonlyArray<string>
  }
  /** What is printed, with DIR and PORT for what differs between machines. */
  readonly line: string
  /** Exit status; `serves` where it is a warning of a node that serves. */
  readonly status: 1 | 2 | "serves"
  readonly needs?: "Postgres" | "a full disk"
}

/** An entry that is right; it needs no weights. */
const entry = {
  id: "my-model",
  kind: "text",
  adapter: "fake",
  ownedBy: "me",
  created: 1_700_000_000,
  files: {},
  options: { slots: 2 },
  price: {},
}

export const catalogText = (...entries: ReadonlyArray<object>): string =>
  JSON.stringify({ models: entries.map((more) => ({ ...entry, ...more })) }, null, 2)

/** Writes the catalog that the world's node is started with. */
export const writeCatalogText = ({ dir }: World, text: string): void =>
  writeFileSync(join(dir, "catalog.json"), text)

/** A mistake in a catalog of one model. */
export const inCatalog =
  (...entries: ReadonlyArray<object>) =>
  (world: World) => {
    writeCatalogText(world, catalogText(...entries))
    return {}
  }

/** A file in the data directory, which is made for it. */
export const inDataDir = ({ dataDir }: World, name: string, content: string | Uint8Array): void => {
  mkdirSync(dataDir, { recursive: true })
  writeFileSync(join(dataDir, name), content)
}

/** Llama's adapter with a file of weights that is there. */
export const withWeights = {
  adapter: "llama-gguf",
  options: {},
  files: { weights: { source: "weights.gguf" } },
}
