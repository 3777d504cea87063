// Files that are no model, or incomplete: a typed failure that names the file and the reason, and a process that keeps
// running.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import { generateText, openText, textRequest } from "../../../support/engines/EngineHarness.ts"
import { writeToyLlama } from "../../../support/engines/ToyGguf.ts"

let folder = ""
const at = (name: string) => join(folder, name)
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "edgewise-load-"))
  writeToyLlama(at("whole.gguf"))
  const whole = readFileSync(at("whole.gguf"))
  writeFileSync(at("half.gguf"), whole.subarray(0, whole.length / 2))
  writeFileSync(at("head.gguf"), whole.subarray(0, 300))
  writeFileSync(at("text.gguf"), "this is no model".repeat(1000))
  writeFileSync(at("empty.gguf"), "")
})
afterAll(() => rmSync(folder, { recursive: true }))

const failure = (name: string, options = {}) =>
  Effect.flip(
    Effect.scoped(openText(llamaGguf, { weights: at(name) }, { contextTokens: 256, slots: 1, ...options })),
  )

for (const name of ["missing.gguf", "half.gguf", "head.gguf", "text.gguf", "empty.gguf"])
  it.live(`${name} is refused by name`, () =>
    Effect.gen(function* () {
      const error = yield* failure(name)
      expect(error.reason).toBe("LoadFailed")
      expect(error.detail).toContain(name)
      expect(error.detail).not.toContain(folder)
      expect(error.detail.length).toBeLessThan(400)
    }),
  )

it.live("options that make no sense and missing weights are refused", () =>
  Effect.gen(function* () {
    expect(yield* failure("whole.gguf", { slots: 0 })).toMatchObject({ reason: "LoadFailed" })
    const none = yield* Effect.flip(Effect.scoped(openText(llamaGguf, {})))
    expect(none.detail).toContain("weights")
  }),
)

it.live("after all that a model loads, twice, and unloads", () =>
  Effect.gen(function* () {
    for (let time = 0; time < 2; time++) {
      const text = yield* Effect.scoped(
        Effect.flatMap(
          openText(llamaGguf, { weights: at("whole.gguf") }, { contextTokens: 256, slots: 1 }),
          (engine) => generateText(engine, textRequest("hi", { maxTokens: 2 })),
        ),
      )
      expect(text.end.completionTokens).toBe(2)
    }
  }),
)
