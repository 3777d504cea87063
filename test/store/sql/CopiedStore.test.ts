// A copy of a data directory says at its first start that it is one. A restart, a directory that was renamed, and a restored backup are none.
import { cpSync, renameSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { makeBackup } from "#store/backup/Backup.ts"
import { restoreBackup } from "#store/backup/Restore.ts"
import { storeLayer } from "#store/Store.ts"
import { collectLines } from "../../support/process/LogLines.ts"
import { tempDir } from "../TempDir.ts"

/** Opens the store as a node does and closes it; the lines about a copy. */
const start = (dataDir: string) =>
  Effect.suspend(() => {
    const { layer, lines } = collectLines()
    const opened = Layer.build(Layer.fresh(storeLayer({ dataDir })).pipe(Layer.provide(layer)))
    return Effect.map(Effect.scoped(opened), () =>
      lines.filter(({ message }) => JSON.stringify(message).includes("is a copy, or was moved")),
    )
  })

it.live("a copied data directory says so once", () =>
  Effect.gen(function* () {
    const dir = yield* tempDir
    const [original, copy] = [join(dir, "original"), join(dir, "copy")]
    expect(yield* start(original)).toEqual([])
    expect(yield* start(original)).toEqual([])
    cpSync(original, copy, { recursive: true })
    const lines = yield* start(copy)
    expect(lines).toMatchObject([{ level: "WARN", annotations: { data_dir: copy } }])
    expect([...(yield* start(copy)), ...(yield* start(original))]).toEqual([])

    const renamed = join(dir, "renamed")
    renameSync(original, renamed)
    expect(yield* start(renamed)).toEqual([])
    const [file, restored] = [join(dir, "backup.tar"), join(dir, "restored")]
    yield* Effect.scoped(makeBackup({ dataDir: renamed, file, version: "0.0.0" }))
    yield* restoreBackup({ dataDir: restored, file })
    expect(yield* start(restored)).toEqual([])
  }).pipe(Effect.scoped),
)
