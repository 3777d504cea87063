// Scalar's script (it draws the API reference), compressed by a thread that is started for this alone: the script is a
// text within a module, and importing it holds an event loop for 28 ms, compressing it takes 74 more (measured).
// Started by the first request for the reference, never before.
import { Worker } from "node:worker_threads"
import { Effect } from "effect"
import type { Asset } from "../http/Asset.ts"

const spawn = (): Worker => {
  const worker = new Worker(new URL("./scalarScriptMain.ts", import.meta.url), {
    name: "scalar-script",
    execArgv: ["--disable-warning=ExperimentalWarning"],
    env: {},
    // It fails with 48 and works with 64 (measured); a limit that should never be reached. A guess.
    resourceLimits: { maxOldGenerationSizeMb: 256 },
  })
  worker.unref()
  return worker
}

/** Fails when the thread ends without an answer. */
export const scalarScript: Effect.Effect<Asset> = Effect.acquireUseRelease(
  Effect.sync(spawn),
  (worker) =>
    Effect.callback<Asset>((resume) => {
      worker.on("message", (asset: Asset) => resume(Effect.succeed(asset)))
      worker.on("error", (error) => resume(Effect.die(error)))
      worker.on("exit", () => resume(Effect.die(new Error("the thread that packs Scalar's script ended"))))
    }),
  (worker) => Effect.promise(() => worker.terminate()),
)
