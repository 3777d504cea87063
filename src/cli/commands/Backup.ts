// `edgewise backup` and `edgewise restore`: a data directory as one file. Both work without a node; a backup also beside one.
import { resolve } from "node:path"
import { Console, Effect } from "effect"
import { Argument, Command } from "effect/cli"
import { load } from "#config/Config.ts"
import { builtInCatalog } from "#config/settings/NodeSettings.ts"
import { makeBackup } from "#store/backup/Backup.ts"
import { BackupFailed } from "#store/backup/BackupFiles.ts"
import { catalogName } from "#store/backup/Manifest.ts"
import { restoreBackup } from "#store/backup/Restore.ts"
import { jsonFlag, printJson } from "../shared/Output.ts"
import { version } from "../shared/Version.ts"

/** The settings, where the store is in the data directory. */
const ofDirectory = Effect.fnUntraced(function* (tools: string) {
  const config = yield* load({})
  if (config.databaseUrl === "") return config
  const problem = `is set, so the store is a Postgres database: use ${tools} (docs/backup.md)`
  return yield* new BackupFailed({ place: "EDGEWISE_DATABASE_URL", problem })
})

const megabytes = (bytes: number): string => `${(bytes / 1_000_000).toFixed(1)} MB`

export const backup = Command.make(
  "backup",
  {
    file: Argument.String("FILE").pipe(
      Argument.withDescription("The backup, a tar file that only its owner can read; must not exist"),
    ),
    json: jsonFlag,
  },
  Effect.fn(function* ({ file, json }) {
    const { catalog, dataDir } = yield* ofDirectory("pg_dump")
    const own = catalog === resolve(builtInCatalog) ? {} : { catalog }
    const made = yield* Effect.scoped(makeBackup({ dataDir, file, version, ...own }))
    const { manifest, sizeBytes } = made
    if (json) return yield* printJson({ file: made.file, size_bytes: sizeBytes, ...manifest })
    const parts = manifest.parts.map(({ name }) => name).join(", ")
    yield* Console.log(`${made.file}: ${megabytes(sizeBytes)}, node ${manifest.node}: ${parts}`)
  }),
).pipe(
  Command.withDescription(
    "Back up the data directory (store, signing keys, catalog; no weights, no uploads), also beside a running node",
  ),
)

export const restore = Command.make(
  "restore",
  {
    file: Argument.String("FILE").pipe(Argument.withDescription("A backup of `edgewise backup`")),
    json: jsonFlag,
  },
  Effect.fn(function* ({ file, json }) {
    const { dataDir } = yield* ofDirectory("pg_restore")
    const { failedJobs, manifest, node, ...restored } = yield* restoreBackup({ dataDir, file })
    if (json) {
      return yield* printJson({
        data_dir: restored.dataDir,
        node,
        failed_jobs: failedJobs,
        backup: manifest,
      })
    }
    yield* Console.log(
      `${restored.dataDir}: restored as ${node} from the backup of ${manifest.node} of ${manifest.made_at}`,
    )
    if (failedJobs > 0) {
      yield* Console.log(`${failedJobs} jobs that had not ended have failed: a backup holds no uploads`)
    }
    if (manifest.parts.some(({ name }) => name === catalogName)) {
      yield* Console.log(`its catalog: set EDGEWISE_CATALOG=${restored.dataDir}/${catalogName}`)
    }
  }),
).pipe(Command.withDescription("Restore a backup into an empty data directory, as a new node"))
