// The folder of compiled code when a node starts: private, without what other versions left, and never too full.
import { spawnSync } from "node:child_process"
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll } from "vitest"
import { CompileCache } from "#domain/models/CompileCache.ts"
import { compiledCode } from "#store/files/CompileCacheFolder.ts"
import { mountNeedsRoot, onlyWhere } from "../../support/groups/Needs.ts"
import { tempDir } from "../TempDir.ts"

const own = `${process.version}-${process.arch}-0123abcd-0`

const folderOf = (dataDir: string) =>
  Effect.provide(
    Effect.gen(function* () {
      return (yield* CompileCache)()
    }),
    compiledCode(dataDir),
  )

it.effect("is made for its owner alone, and what another version of Node left there goes", () =>
  Effect.gen(function* () {
    const dataDir = join(yield* tempDir, "not", "yet", "there")
    const folder = join(dataDir, "compiled")
    expect(yield* folderOf(dataDir)).toBe(folder)
    expect(statSync(folder).mode & 0o777).toBe(0o700)
    for (const name of [own, "v18.0.0-x64-0123abcd-0"]) {
      mkdirSync(join(folder, name))
      writeFileSync(join(folder, name, "0a1b2c3d"), "code")
    }
    writeFileSync(join(folder, "stray"), "")
    expect(yield* folderOf(dataDir)).toBe(folder)
    expect(readdirSync(folder)).toEqual([own])
    expect(readdirSync(join(folder, own))).toEqual(["0a1b2c3d"])
  }),
)

it.effect("is emptied when far more is in it than one installation has modules", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const versioned = join(dataDir, "compiled", own)
    mkdirSync(versioned, { recursive: true })
    for (let file = 0; file < 5_000; file++) writeFileSync(join(versioned, String(file)), "")
    yield* folderOf(dataDir)
    expect(readdirSync(versioned)).toHaveLength(5_000)
    writeFileSync(join(versioned, "one more"), "")
    yield* folderOf(dataDir)
    expect(readdirSync(join(dataDir, "compiled"))).toEqual([])
  }),
)

it.effect("is done without where it cannot be made", () =>
  Effect.gen(function* () {
    const dataDir = join(yield* tempDir, "file")
    writeFileSync(dataDir, "")
    expect(yield* folderOf(dataDir)).toBeUndefined()
  }),
)

describe("a disk that is full", () => {
  const mountPoint = mkdtempSync(join(tmpdir(), "edgewise-small-disk-"))
  const mounted = spawnSync("mount", ["-t", "tmpfs", "-o", "size=80m", "tmpfs", mountPoint]).status === 0
  afterAll(() => {
    if (mounted) spawnSync("umount", ["-l", mountPoint])
    rmSync(mountPoint, { recursive: true, force: true })
  })

  // Mounting needs root.
  it.effect(
    "accepts no more, until space is free again",
    () =>
      Effect.gen(function* () {
        const asked = yield* Effect.provide(
          Effect.gen(function* () {
            return yield* CompileCache
          }),
          compiledCode(mountPoint),
        )
        expect(asked()).toBe(join(mountPoint, "compiled"))
        const filler = join(mountPoint, "filler")
        writeFileSync(filler, Buffer.alloc(40 * 1024 * 1024))
        expect(asked()).toBeUndefined()
        rmSync(filler)
        expect(asked()).toBe(join(mountPoint, "compiled"))
      }),
    onlyWhere(mounted, mountNeedsRoot),
  )
})
