// What a GGUF header says about its model, read in pieces of any size, from this machine or from another one.
import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import fc from "fast-check"
import { afterAll, expect, it } from "vitest"
import { checkGguf, checkGgufAt } from "#weights/formats/GgufCheck.ts"
import { RandomWords } from "../../../bench/sizes/RandomWords.ts"
import { type GgufMetadata, writeGguf } from "../../../bench/sizes/text/Gguf.ts"

const dir = mkdtempSync(join(tmpdir(), "edgewise-header-"))
afterAll(() => rmSync(dir, { recursive: true, force: true }))
let files = 0

const written = async (metadata: GgufMetadata): Promise<string> => {
  const path = join(dir, `${files++}.gguf`)
  const tensor = { name: "output.weight", shape: [32, 4], type: "q8_0", deviation: 1 } as const
  await writeGguf(path, { metadata, tensors: [tensor], random: new RandomWords(1) })
  return path
}

const uint32 = (value: number) => ({ type: "uint32", value }) as const
const text = (value: string) => ({ type: "string", value }) as const

/** The dimensions of Qwen3 0.6B, whose heads are wider than its embedding divided by their number. */
const qwen: GgufMetadata = {
  "general.architecture": text("qwen3"),
  "general.name": text("Qwen3 0.6B"),
  "general.license": text("apache-2.0"),
  "general.file_type": uint32(7),
  "qwen3.context_length": uint32(40_960),
  "qwen3.block_count": uint32(28),
  "qwen3.embedding_length": uint32(1_024),
  "qwen3.attention.head_count": uint32(16),
  "qwen3.attention.head_count_kv": uint32(8),
  "qwen3.attention.key_length": uint32(128),
  "qwen3.attention.value_length": uint32(128),
  "tokenizer.ggml.tokens": { type: "strings", value: Array.from({ length: 2_000 }, (_, n) => `token ${n}`) },
  "tokenizer.chat_template": text("{{ messages }}"),
}

it("says name, context, quantisation, and what a token takes in the context", async () => {
  expect(await checkGguf(await written(qwen))).toMatchObject({
    architecture: "qwen3",
    name: "Qwen3 0.6B",
    licence: "apache-2.0",
    fileType: 7,
    contextTokens: 40_960,
    // 28 layers x 8 heads x (128 + 128) values x 2 bytes.
    tokenBytes: 114_688,
    hasChatTemplate: true,
    pooling: undefined,
    tensors: 1,
  })
})

it("adds up heads that differ by layer, and divides the width where no head has a length", async () => {
  const {
    "qwen3.attention.key_length": _k,
    "qwen3.attention.value_length": _v,
    "tokenizer.chat_template": _t,
    ...rest
  } = qwen
  const perLayer = {
    ...rest,
    "qwen3.attention.head_count_kv": {
      type: "int32s",
      value: Array.from({ length: 28 }, (_, n) => (n % 4 === 0 ? 4 : 0)),
    },
  } as const
  // 7 layers of 4 heads x (64 + 64) values x 2 bytes.
  expect(await checkGguf(await written(perLayer))).toMatchObject({
    tokenBytes: 7_168,
    hasChatTemplate: false,
  })
  const { "qwen3.block_count": _b, ...without } = rest
  expect(await checkGguf(await written(without))).toMatchObject({
    tokenBytes: undefined,
    contextTokens: 40_960,
  })
})

it("is the same whatever the pieces, and asks for no byte of the tensors", async () => {
  const path = await written(qwen)
  const bytes = readFileSync(path)
  const whole = await checkGguf(path)
  await fc.assert(
    fc.asyncProperty(fc.integer({ min: 32 * 1024, max: 200_000 }), async (pieceBytes) => {
      let furthest = 0
      const read = async (at: number, count: number) => {
        furthest = Math.max(furthest, at)
        return bytes.subarray(at, at + count)
      }
      expect(await checkGgufAt({ sizeBytes: bytes.length, pieceBytes, read })).toEqual(whole)
      expect(furthest).toBeLessThan(bytes.length - 4 * 34)
    }),
    { numRuns: 30 },
  )
})

it("a list of layers without an end, and a source that fails", async () => {
  const long = {
    ...qwen,
    "qwen3.attention.head_count_kv": { type: "int32s", value: Array.from({ length: 2_000 }, () => 1) },
  } as const
  expect(await checkGguf(await written(long))).toEqual({ problem: "its metadata is damaged" })
  const broken = { sizeBytes: 1e9, pieceBytes: 32 * 1024, read: () => Promise.reject(new Error("cut")) }
  await expect(checkGgufAt(broken)).rejects.toThrow("cut")
})
