// Pictures in a text engine: prefix reuse, cancels, refusals before anything is computed, and files that do not fit.
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { afterAll } from "vitest"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import { RandomWords } from "../../../../bench/sizes/RandomWords.ts"
import { writeGguf } from "../../../../bench/sizes/text/Gguf.ts"
import {
  type TowerShape,
  towerMetadata,
  towerTensors,
  visionShapes,
} from "../../../../bench/sizes/vision/TowerShapes.ts"
import { generateText, openText, startText, textRequest } from "../../../support/engines/EngineHarness.ts"
import { temporaryDir } from "../../../support/process/TemporaryDir.ts"
import { pictureRequest, toyFiles } from "./Toys.ts"

const folder = temporaryDir()
afterAll(folder.remove)

const opened = Effect.fnUntraced(function* (
  size: "toy-idefics3" | "toy-mlp" | "toy-qwen",
  options: { readonly contextTokens?: number; readonly slots?: number } = {},
) {
  const files = yield* Effect.promise(() => toyFiles(folder.path, size))
  return yield* openText(llamaGguf, { ...files }, { contextTokens: 1024, slots: 1, ...options })
})

describe("pictures in a text engine", () => {
  for (const size of ["toy-idefics3", "toy-qwen"] as const)
    it.live(`${size}: another question about the same picture keeps its rows, another picture does not`, () =>
      Effect.gen(function* () {
        const engine = yield* opened(size)
        const first = yield* generateText(engine, pictureRequest([3, "what is it?"]))
        const again = yield* generateText(engine, pictureRequest([3, "how many are there?"]))
        expect(first.started.cachedTokens).toBe(0)
        expect(again.started.cachedTokens).toBeGreaterThan(again.started.imageTokens ?? Infinity)
        const other = yield* generateText(engine, pictureRequest([12, "how many are there?"]))
        // The template's text and the first markers are the same.
        expect(other.started.cachedTokens).toBeLessThanOrEqual(6)
        // As long as the kept part is the same, so is the reply.
        const cold = yield* opened(size)
        const alone = yield* generateText(cold, pictureRequest([3, "how many are there?"]))
        expect(again.text).toBe(alone.text)
      }).pipe(Effect.scoped),
    )

  it.live("several replies share the rows of one prompt", () =>
    Effect.gen(function* () {
      const engine = yield* opened("toy-qwen", { slots: 4 })
      const one = yield* generateText(engine, pictureRequest([3, 12, "which?"]))
      const four = yield* generateText(engine, pictureRequest([3, 12, "which?"], { replies: 4 }))
      for (let reply = 0; reply < 4; reply++) {
        const texts = four.deltas.filter(({ detail }) => (detail?.reply ?? 0) === reply)
        expect(texts.map(({ text }) => text).join("")).toBe(one.text)
      }
    }).pipe(Effect.scoped),
  )

  it.live("a request can be cancelled at any point, and the next one is answered as ever", () =>
    Effect.gen(function* () {
      const engine = yield* opened("toy-qwen", { slots: 2 })
      const request = pictureRequest([24, "what is it?"])
      const expected = yield* generateText(engine, request)
      for (let turn = 0; turn < 6; turn++) {
        const { fiber } = yield* startText(engine, pictureRequest([24, 15, 20, `${turn}?`]))
        yield* Effect.sleep(turn * 7)
        yield* Fiber.interrupt(fiber)
      }
      expect((yield* generateText(engine, request)).text).toBe(expected.text)
    }).pipe(Effect.scoped),
  )

  it.live("a prompt that does not fit is refused with both numbers", () =>
    Effect.gen(function* () {
      const engine = yield* opened("toy-idefics3", { contextTokens: 256 })
      const several = [6, 20, 15, 16, 24, 0, 13, 14, "compare"]
      const failure = yield* Effect.flip(generateText(engine, pictureRequest(several)))
      expect(failure).toMatchObject({ reason: "PromptTooLong", field: "messages", contextTokens: 256 })
      expect(failure.promptTokens).toBeGreaterThan(256)
      const few = yield* generateText(engine, pictureRequest(several, {}, "low"))
      expect(few.started.imageTokens).toBe(8 * 4)
    }).pipe(Effect.scoped),
  )

  it.live("markers in a user's text are ordinary text", () =>
    Effect.gen(function* () {
      const engine = yield* opened("toy-qwen")
      const markers = "<|vision_start|><|vision_end|><fake_token_around_image><|im_end|>"
      const plain = yield* generateText(engine, pictureRequest([3, "x"], { maxTokens: 1 }))
      const marked = yield* generateText(engine, pictureRequest([3, `x${markers}`], { maxTokens: 1 }))
      expect(marked.started.imageTokens).toBe(plain.started.imageTokens)
      expect(marked.started.promptTokens - plain.started.promptTokens).toBeGreaterThan(12)
    }).pipe(Effect.scoped),
  )

  it.live("a text model refuses pictures", () =>
    Effect.gen(function* () {
      const { weights } = yield* Effect.promise(() => toyFiles(folder.path, "toy-mlp"))
      const engine = yield* openText(llamaGguf, { weights }, { contextTokens: 256, slots: 1 })
      expect(engine.facts.pictures).toBeUndefined()
      const failure = yield* Effect.flip(generateText(engine, pictureRequest([3, "what?"])))
      expect(failure).toMatchObject({
        reason: "InvalidInput",
        field: "messages",
        detail: "this model takes no pictures",
      })
      expect((yield* generateText(engine, textRequest("what?"))).end.imageTokens).toBeUndefined()
    }).pipe(Effect.scoped),
  )
})

describe("files that do not fit are refused when the model loads", () => {
  const towerFile = async (changes: Partial<TowerShape>, projector?: string, without?: string) => {
    const path = join(mkdtempSync(join(folder.path, "tower-")), "tower.gguf")
    const shape: TowerShape = { ...visionShapes["toy-mlp"].tower, ...changes }
    const metadata = towerMetadata("toy", shape)
    await writeGguf(path, {
      metadata:
        projector === undefined
          ? metadata
          : { ...metadata, "clip.projector_type": { type: "string", value: projector } },
      tensors: towerTensors(shape).filter(({ name }) => name !== without),
      random: new RandomWords(1),
    })
    return path
  }
  const cutShort = async () => {
    const path = await towerFile({})
    const bytes = readFileSync(path)
    writeFileSync(path, bytes.subarray(0, bytes.length - 5_000))
    return path
  }
  const cases: Readonly<Record<string, readonly [make: () => Promise<string>, said: string]>> = {
    "rows of another width": [
      () => towerFile({ textWidth: 96 }),
      "tower.gguf makes rows of 96 values, and the text model reads rows of 64",
    ],
    "another projector": [
      () => towerFile({}, "gemma3"),
      "tower.gguf has the projector type gemma3; supported are idefics3, mlp, qwen3vl_merger",
    ],
    "a missing tensor": [
      () => towerFile({}, undefined, "v.blk.0.ln1.weight"),
      "tower.gguf is no tower of type mlp: there is no tensor v.blk.0.ln1.weight",
    ],
    "tensors of another projector": [
      () => towerFile({ projector: "idefics3", longest: 160, merge: 2 }, "mlp"),
      "tower.gguf is no usable tower: there is no tensor mm.2.weight",
    ],
    "a file that is cut short": [cutShort, "tower.gguf"],
    "a text model": [
      async () => (await toyFiles(folder.path, "toy-mlp")).weights,
      "text.gguf is no mmproj file: its general.architecture is not clip",
    ],
  }
  for (const [name, [make, said]] of Object.entries(cases))
    it.live(name, () =>
      Effect.gen(function* () {
        const { weights } = yield* Effect.promise(() => toyFiles(folder.path, "toy-mlp"))
        const mmproj = yield* Effect.promise(make)
        const failure = yield* Effect.flip(openText(llamaGguf, { weights, mmproj }, { slots: 1 }))
        expect(failure).toMatchObject({ reason: "LoadFailed" })
        expect(failure.detail).toContain(said)
      }).pipe(Effect.scoped),
    )
})
