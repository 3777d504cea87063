// A text engine with a toy model, whose file is written for it and removed with its scope.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import type { EngineError, TextEngine } from "#engines/protocol/Engine.ts"
import { openText } from "./EngineHarness.ts"
import { type ToyOptions, writeToyLlama, writeToyQwen35 } from "./ToyGguf.ts"

const toys = { llama: writeToyLlama, qwen35: writeToyQwen35 }

export const openToy = (
  kind: keyof typeof toys,
  toy: ToyOptions = {},
  options: Record<string, unknown> = {},
): Effect.Effect<TextEngine, EngineError, Scope.Scope> =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "edgewise-toy-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true })),
    )
    const weights = join(folder, "toy.gguf")
    toys[kind](weights, toy)
    return yield* openText(llamaGguf, { weights }, { contextTokens: 1024, slots: 4, ...options })
  })
