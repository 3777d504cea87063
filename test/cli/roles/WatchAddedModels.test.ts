// The node's look at the file of added models: a change is a reload, and a file that is not there is none.
import { unwatchFile, watchFile, writeFileSync } from "node:fs"
import { Deferred, Effect } from "effect"
import { afterAll, expect, it } from "vitest"
import { load } from "#config/Config.ts"
import { addedModels } from "#weights/NodeCatalog.ts"
import { watchAddedModels } from "../../../src/cli/roles/WatchAddedModels.ts"
import { temporaryDir } from "../../support/nodes/TestNode.ts"

const dir = temporaryDir()
afterAll(dir.remove)

it("reloads once for a file that was not there at the start", async () => {
  let reloads = 0
  await Effect.runPromise(
    Effect.gen(function* () {
      const config = yield* load({}, { EDGEWISE_DATA_DIR: dir.path })
      const reloaded = yield* Deferred.make<void>()
      const reload = Effect.andThen(
        Effect.sync(() => void reloads++),
        Deferred.succeed(reloaded, undefined),
      )
      const path = addedModels(dir.path)
      // Node looks once for all watchers of a path, and calls them in their order.
      const looked = new Promise<void>((resolve) => watchFile(path, { interval: 1_000 }, () => resolve()))
      yield* watchAddedModels(config, Effect.asVoid(reload))
      yield* Effect.promise(() => looked)
      for (let turn = 0; turn < 3; turn++) yield* Effect.promise(() => new Promise(setImmediate))
      expect(reloads).toBe(0)
      writeFileSync(path, "{}")
      yield* Deferred.await(reloaded)
      unwatchFile(path)
    }).pipe(Effect.scoped),
  )
  expect(reloads).toBe(1)
})
