// Which file of a repository is used, which tower belongs to it, and how many sequences its memory allows.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { chooseGguf, roomFor, towerOf } from "#weights/found/GgufModel.ts"
import type { ListedFile } from "#weights/found/HubFolder.ts"

const file = (path: string, sizeBytes = 1_000): ListedFile => ({ path, sizeBytes, sha256: undefined })
const gigabyte = 1024 ** 3

describe("the file of a repository", () => {
  const qwen = [
    file("README.md"),
    file("Qwen3-4B-Q4_K_M.gguf", 2.5 * gigabyte),
    file("Qwen3-4B-Q5_K_M.gguf", 2.9 * gigabyte),
    file("Qwen3-4B-Q8_0.gguf", 4.3 * gigabyte),
    file("mmproj-Qwen3-4B-F16.gguf", gigabyte),
  ]

  it.each([
    [16, "Qwen3-4B-Q8_0.gguf"],
    [8, "Qwen3-4B-Q4_K_M.gguf"],
    [5.9, "Qwen3-4B-Q4_K_M.gguf"],
    // Where nothing fits, the smallest: the check of the memory then says what is missing.
    [2, "Qwen3-4B-Q4_K_M.gguf"],
  ])("%d GB of memory: %s", (memory, path) => {
    expect(chooseGguf(qwen, memory * gigabyte)?.path).toBe(path)
  })

  it("is never a tower or a part, and any other name will do", () => {
    expect(chooseGguf([file("mmproj-F16.gguf"), file("big-00001-of-00002.gguf")], gigabyte)).toBeUndefined()
    expect(chooseGguf([file("model.gguf")], gigabyte)?.path).toBe("model.gguf")
  })
})

describe("the tower beside a model", () => {
  it.each([
    [
      "SmolVLM-256M-Instruct-Q8_0.gguf",
      ["mmproj-SmolVLM-256M-Instruct-f16.gguf", "mmproj-SmolVLM-256M-Instruct-Q8_0.gguf"],
      "mmproj-SmolVLM-256M-Instruct-Q8_0.gguf",
    ],
    [
      "Qwen3VL-2B-Instruct-Q4_K_M.gguf",
      ["mmproj-Qwen3VL-2B-Instruct-F16.gguf"],
      "mmproj-Qwen3VL-2B-Instruct-F16.gguf",
    ],
    [
      "Qwen3-VL-4B-Instruct-Q4_K_M.gguf",
      ["mmproj-BF16.gguf", "mmproj-F16.gguf", "Qwen3-VL-4B-Instruct-Q8_0.gguf"],
      "mmproj-F16.gguf",
    ],
    // Of another model, in another folder, or without a name beside two models.
    ["a-Q8_0.gguf", ["mmproj-b-F16.gguf"], undefined],
    ["a-Q8_0.gguf", ["towers/mmproj-F16.gguf"], undefined],
    ["a-Q8_0.gguf", ["mmproj-F16.gguf", "b-Q8_0.gguf"], undefined],
  ])("%s beside %j: %s", (model, others, tower) => {
    expect(
      towerOf(
        [model, ...others].map((path) => file(path)),
        file(model),
      )?.path,
    ).toBe(tower)
  })
})

it("contexts stay within half of what the weights leave, where that is possible at all", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 40 * gigabyte }),
      fc.integer({ min: 0, max: 40 * gigabyte }),
      fc.integer({ min: 1, max: 2 ** 20 }),
      fc.integer({ min: 1, max: 2 ** 20 }),
      (weightBytes, memoryBytes, tokenBytes, trained) => {
        const {
          contextBytes = 0,
          contextTokens,
          slots,
        } = roomFor({ contextTokens: trained, tokenBytes }, weightBytes, memoryBytes)
        expect([1, 2, 4, 8, 16]).toContain(slots)
        expect(contextTokens).toBeLessThanOrEqual(Math.max(32, trained))
        const free = Math.max(0, memoryBytes - weightBytes) / 2
        if (contextBytes > free) expect([slots, contextTokens <= 2_048]).toEqual([1, true])
      },
    ),
  )
  expect(roomFor({ contextTokens: 40_960, tokenBytes: undefined }, 1, 1)).toMatchObject({
    slots: 16,
    contextTokens: 8_192,
  })
})
