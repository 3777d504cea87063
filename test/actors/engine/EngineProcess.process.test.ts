// The compile cache that the start of an engine process leaves for the next one, and that no start depends on it.
import { fork } from "node:child_process"
import { once } from "node:events"
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import * as EngineProcess from "#actors/engine/EngineProcess.ts"
import { CompileCache, compiledCodeEnvironment } from "#domain/models/CompileCache.ts"
import type { FromEngine } from "#engines/protocol/EngineProtocol.ts"
import { compiledCode } from "#store/files/CompileCacheFolder.ts"
import { tempDir } from "../../store/TempDir.ts"

const fakeSpec = { modelId: "fake", adapter: "fake", files: {}, options: { slots: 1 }, threads: 1 }

/** Starts the fake engine, kills it once it has loaded, and returns its messages until then. */
const killedOnceLoaded = Effect.scoped(
  Effect.gen(function* () {
    const loaded = yield* Deferred.make<FromEngine<"text">>()
    const process = yield* EngineProcess.start<"text">({
      isolation: "process",
      environment: {},
      onMessage: (message) => {
        if (message.type !== "pong") Deferred.doneUnsafe(loaded, Effect.succeed(message))
      },
    })
    process.send({ type: "load", spec: fakeSpec })
    const message = yield* Deferred.await(loaded)
    process.kill()
    yield* process.exited
    return message.type
  }),
)

/** The same without a gateway, from the sources: the cache has one file for each module, which the tests' own programs join in few files. */
const killedOnceLoadedFromSources = async (compiled: string): Promise<void> => {
  const entry = fileURLToPath(new URL("../../../engines/engineMain.ts", import.meta.url))
  const child = fork(entry, [], {
    serialization: "advanced",
    execArgv: ["--disable-warning=ExperimentalWarning"],
    env: compiledCodeEnvironment(compiled),
  })
  child.send([{ type: "load", spec: fakeSpec }])
  await once(child, "message")
  child.kill("SIGKILL")
  await once(child, "exit")
}

const filesOf = (folder: string): ReadonlyArray<string> =>
  readdirSync(folder).flatMap((version) =>
    readdirSync(join(folder, version)).map((name) => join(folder, version, name)),
  )

/** Content and modification time of each file in a folder. */
const stateOf = (folder: string) =>
  filesOf(folder)
    .map((file) => `${file} ${statSync(file).mtimeMs} ${readFileSync(file).length}`)
    .toSorted()

describe("compiled code", () => {
  it.live("is kept by a process that is killed, and used by the next one", () =>
    Effect.gen(function* () {
      const dataDir = yield* tempDir
      const folder = join(dataDir, "compiled")
      yield* Effect.gen(function* () {
        expect((yield* CompileCache)()).toBe(folder)
        expect(statSync(folder).mode & 0o777).toBe(0o700)
        expect(yield* killedOnceLoaded).toBe("loaded")
        const first = stateOf(folder)
        expect(first.length).toBeGreaterThan(0)
        expect(yield* killedOnceLoaded).toBe("loaded")
        expect(stateOf(folder)).toEqual(first)
      }).pipe(Effect.provide(compiledCode(dataDir)))
    }),
  )

  it.live("has few modules: an engine imports parts of Effect, whose index alone has 250", () =>
    Effect.gen(function* () {
      const folder = join(yield* tempDir, "compiled")
      yield* Effect.promise(() => killedOnceLoadedFromSources(folder))
      expect(filesOf(folder).length).toBeGreaterThan(20)
      expect(filesOf(folder).length).toBeLessThan(180)
    }),
  )

  it.live("is checked: damaged files are compiled again", () =>
    Effect.gen(function* () {
      const dataDir = yield* tempDir
      const folder = join(dataDir, "compiled")
      yield* Effect.gen(function* () {
        yield* killedOnceLoaded
        const files = filesOf(folder)
        for (const [nth, file] of files.entries())
          writeFileSync(file, nth % 2 === 0 ? "" : Buffer.alloc(3_000, nth))
        expect(yield* killedOnceLoaded).toBe("loaded")
        expect(filesOf(folder).filter((file) => statSync(file).size === 0)).toEqual([])
      }).pipe(Effect.provide(compiledCode(dataDir)))
    }),
  )

  it.live("starts without a cache folder", () =>
    Effect.gen(function* () {
      // The cache folder cannot be made: a file stands where its parent folder would be.
      const inTheWay = join(yield* tempDir, "file")
      writeFileSync(inTheWay, "")
      expect(
        yield* killedOnceLoaded.pipe(Effect.provideService(CompileCache, () => join(inTheWay, "compiled"))),
      ).toBe("loaded")
      expect(yield* killedOnceLoaded).toBe("loaded")
    }),
  )
})
