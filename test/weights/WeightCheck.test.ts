// Weight files that are whole, cut short, damaged, of another format or kind: the result of the check, without loading.
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs"
import { homedir, tmpdir } from "node:os"
import { basename, dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it, vi } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { FileReader } from "#store/files/FileReader.ts"
import { checkGguf } from "#weights/formats/GgufCheck.ts"
import { checkOnnx } from "#weights/formats/OnnxCheck.ts"
import { locate } from "#weights/ModelFiles.ts"
import { checkWeight } from "#weights/WeightCheck.ts"
import { writeToyLlama } from "../support/engines/ToyGguf.ts"
import { fakeDeployment } from "../support/nodes/FakeNode.ts"

const models = fileURLToPath(new URL("../../models/", import.meta.url))
const demoGguf = join(models, "llama-demo/llama-demo-Q8_0.gguf")
const demoGraphs = [
  join(models, "kokoro-demo/model.onnx"),
  join(models, "kokoro-demo/style_encoder.onnx"),
  join(models, "whisper-demo-en/onnx/encoder_model.onnx"),
  join(models, "whisper-demo-en/onnx/decoder_model_merged.onnx"),
]

let folder = ""
const at = (name: string) => join(folder, name)
const written = (name: string, bytes: Uint8Array | string): string => {
  writeFileSync(at(name), bytes)
  return at(name)
}
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), "edgewise-weights-"))
})
afterAll(() => rmSync(folder, { recursive: true }))

const textEntry = { adapter: "llama-gguf", kind: "text" } as const
const speechEntry = { adapter: "kokoro-onnx", kind: "speech" } as const
const textProblem = async (path: string, sha256?: string) =>
  (await checkWeight({ entry: textEntry, role: "weights", path, sha256 })).problem
const graphProblem = async (path: string) =>
  (await checkWeight({ entry: speechEntry, role: "model", path })).problem

// ------------------------------------------------------------------ files by hand

const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4)
  bytes.writeUInt32LE(value)
  return bytes
}
const uint64 = (value: number | bigint): Buffer => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigUInt64LE(BigInt(value))
  return bytes
}
const name = (text: string): Buffer => Buffer.concat([uint64(Buffer.byteLength(text)), Buffer.from(text)])

/** A GGUF with text metadata and one tensor of 32 Q8_0 values. */
const gguf = (metadata: Readonly<Record<string, string>>, parts = 1): Buffer => {
  const keys = Object.entries(metadata).map(([key, value]) =>
    Buffer.concat([name(key), uint32(8), name(value)]),
  )
  if (parts > 1) keys.push(Buffer.concat([name("split.count"), uint32(2), Buffer.from([parts, 0])]))
  const tensor = Buffer.concat([name("t"), uint32(1), uint64(32), uint32(8), uint64(0)])
  const header = Buffer.concat([
    Buffer.from("GGUF"),
    uint32(3),
    uint64(1),
    uint64(keys.length),
    ...keys,
    tensor,
  ])
  return Buffer.concat([header, Buffer.alloc((32 - (header.length % 32)) % 32), Buffer.alloc(34)])
}

const field = (number: number, payload: Buffer | number): Buffer =>
  typeof payload === "number"
    ? Buffer.from([number * 8, payload])
    : Buffer.concat([Buffer.from([number * 8 + 2, ...lengthOf(payload.length)]), payload])
const lengthOf = (length: number): ReadonlyArray<number> =>
  length < 128 ? [length] : [(length & 127) | 128, length >> 7]
const pair = (key: string, value: string): Buffer =>
  field(13, Buffer.concat([field(1, Buffer.from(key)), field(2, Buffer.from(value))]))

/** An ONNX model whose one initializer lies in another file. */
const onnxWithData = (location: string): Buffer => {
  const tensor = Buffer.concat([
    pair("location", location),
    pair("offset", "64"),
    pair("length", "100"),
    field(14, 1),
  ])
  return Buffer.concat([field(1, 8), field(2, Buffer.from("test")), field(7, field(5, tensor))])
}

// ------------------------------------------------------------------ tests

describe("a whole file", () => {
  it("has no problem: built-in weights and toys, with and without their sum", async () => {
    writeToyLlama(at("toy.gguf"))
    expect(await textProblem(at("toy.gguf"))).toBeUndefined()
    const sum = readFileSync(`${demoGguf}.sha256`, "utf8").split(" ")[0]!
    expect(await textProblem(demoGguf, sum)).toBeUndefined()
    for (const graph of demoGraphs) expect([graph, await graphProblem(graph)]).toEqual([graph, undefined])
    expect(await checkGguf(demoGguf)).toMatchObject({ architecture: "llama", parts: 1 })
  })

  it("says how many parameters a GGUF has, in all of its parts", async () => {
    const countOf = async (path: string) =>
      (await checkWeight({ entry: textEntry, role: "weights", path })).parameters
    // A file of Q8_0 has 34 bytes for 32 values, and a header.
    const { size } = statSync(demoGguf)
    const counted = await countOf(demoGguf)
    expect(counted).toBeGreaterThan(((size * 32) / 34) * 0.8)
    expect(counted).toBeLessThan((size * 32) / 34)
    for (const part of [1, 2])
      written(`split-0000${part}-of-00002.gguf`, gguf({ "general.architecture": "llama" }, 2))
    expect(await countOf(at("split-00001-of-00002.gguf"))).toBe(64)
    expect(await countOf(written("cut.gguf", readFileSync(demoGguf).subarray(0, 5_000)))).toBe(0)
  })
})

describe("a file that is cut short", () => {
  it("is found wherever a GGUF is cut", async () => {
    const whole = readFileSync(demoGguf)
    // The last tensor's bytes may be followed by padding: every cut that takes a byte of a tensor counts.
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 4, max: whole.length - 64 }), async (length) => {
        expect(await textProblem(written("cut.gguf", whole.subarray(0, length)))).toMatch(/^is cut short: /)
      }),
      // The second is inside the list of words, whose length is then more than the file's.
      { numRuns: 100, examples: [[4], [719]] },
    )
    expect(await textProblem(written("half.gguf", whole.subarray(0, whole.length / 2)))).toBe(
      `is cut short: it has ${whole.length / 2} bytes and needs ${whole.length}`,
    )
  })

  it("is found wherever an ONNX model is cut", async () => {
    const whole = readFileSync(demoGraphs[2]!)
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 3, max: whole.length - 1 }), async (length) => {
        const problem = await graphProblem(written("cut.onnx", whole.subarray(0, length)))
        // A cut between two fields of the message leaves a valid message; its graph is the last but one field.
        if (problem !== undefined) expect(problem).toMatch(/cut short|is not an ONNX model/)
        else expect(whole.length - length).toBeLessThan(64)
      }),
      { numRuns: 100 },
    )
  })

  it("is empty in the end", async () => {
    expect(await textProblem(written("empty.gguf", ""))).toBe("is empty")
    expect(await graphProblem(written("empty.onnx", ""))).toBe("is empty")
  })
})

describe("another file than it should be", () => {
  it("is named with both facts", async () => {
    const onnx = demoGraphs[0]!
    cpSync(onnx, at("renamed.gguf"))
    cpSync(demoGguf, at("renamed.onnx"))
    expect(await textProblem(at("renamed.gguf"))).toBe(
      "is an ONNX model, but the adapter llama-gguf reads a GGUF file here",
    )
    expect(await graphProblem(at("renamed.onnx"))).toBe(
      "is a GGUF file, but the adapter kokoro-onnx reads an ONNX model here",
    )
    expect(await graphProblem(demoGguf)).toContain("is a GGUF file")
    expect(await textProblem(written("page.gguf", "<!doctype html><title>404</title>"))).toBe(
      "is not a GGUF file",
    )
    expect(await graphProblem(written("text.onnx", "this is no model".repeat(100)))).toMatch(
      /is not an ONNX model/,
    )
    expect(await textProblem(written("lfs.gguf", "version https://git-lfs.github.com/spec/v1\n"))).toBe(
      "is a Git LFS pointer instead of the file, but the adapter llama-gguf reads a GGUF file here",
    )
  })

  it.each([
    [{ "general.architecture": "clip" }, "clip, an image or audio encoder"],
    [{ "general.architecture": "whisper" }, "whisper, a transcription model"],
    [{ "general.architecture": "nomic-bert" }, "nomic-bert, an embedding model"],
    [{ "general.architecture": "llama", "general.type": "adapter" }, "llama, an adapter to another model"],
  ])("%o is no text model", async (metadata, what) => {
    expect(await textProblem(written("kind.gguf", gguf(metadata)))).toBe(
      `is a GGUF of architecture ${what}, but the entry's kind is text`,
    )
  })

  it("is no mmproj file: a text model", async () => {
    const problem = async (path: string) =>
      (await checkWeight({ entry: textEntry, role: "mmproj", path })).problem
    expect(await problem(demoGguf)).toBe("is a GGUF of architecture llama, but an mmproj file has clip")
    expect(await problem(demoGraphs[0]!)).toBe(
      "is an ONNX model, but the adapter llama-gguf reads a GGUF file here",
    )
  })

  it("is a text model where the architecture is one, known here or not", async () => {
    for (const architecture of ["llama", "qwen35", "an-architecture-of-tomorrow"])
      expect(
        await textProblem(written("kind.gguf", gguf({ "general.architecture": architecture }))),
      ).toBeUndefined()
  })

  it("has another SHA-256, also after it was replaced under the same name", async () => {
    const sum = readFileSync(`${demoGguf}.sha256`, "utf8").split(" ")[0]!
    cpSync(demoGguf, at("sum.gguf"))
    expect(await textProblem(at("sum.gguf"), sum)).toBeUndefined()
    const changed = readFileSync(demoGguf)
    changed[changed.length - 1]! ^= 1
    written("sum.gguf", changed)
    utimesSync(at("sum.gguf"), 1_000, 1_000)
    expect(await textProblem(at("sum.gguf"), sum)).toMatch(/^has SHA-256 [0-9a-f]{64}, the catalog says /)
    cpSync(demoGguf, at("sum.gguf"))
    expect(await textProblem(at("sum.gguf"), sum)).toBeUndefined()
  })

  it("is not there, a folder, or not readable", async () => {
    expect(await textProblem(at("none.gguf"))).toBe("is not there")
    mkdirSync(at("folder"), { recursive: true })
    expect(await textProblem(at("folder"))).toBe("is a folder, not a file")
    const voices = { entry: speechEntry, role: "voices", path: at("folder") }
    expect((await checkWeight(voices)).problem).toBeUndefined()
    for (const path of [homedir(), dirname(homedir()), "/"])
      expect((await checkWeight({ ...voices, path })).problem).toMatch(/^is or contains the home directory/)
    expect(await textProblem(join(demoGguf, "below"))).toBe("cannot be read (ENOTDIR)")
  })
})

describe("files that belong together", () => {
  it("are all there: external data of an ONNX model", async () => {
    const path = written("outside.onnx", onnxWithData("outside.data"))
    expect(await checkOnnx(path)).toEqual({ externalData: [{ location: "outside.data", neededBytes: 164 }] })
    expect(await graphProblem(path)).toBe("needs outside.data beside it, which is not there")
    written("outside.data", Buffer.alloc(163))
    expect(await graphProblem(path)).toMatch(/cut short: it has 163 bytes and needs 164/)
    written("outside.data", Buffer.alloc(164))
    expect(await checkWeight({ entry: speechEntry, role: "model", path })).toMatchObject({
      problem: undefined,
      parts: [at("outside.data")],
    })
    for (const hidden of [".netrc", ".ssh/id_ed25519", "a/.b"])
      expect(await graphProblem(written("away.onnx", onnxWithData(hidden)))).toMatch(/names a hidden file/)
    for (const away of ["/etc/passwd", "../up.data"])
      expect(await graphProblem(written("away.onnx", onnxWithData(away)))).toMatch(/outside of its folder/)
  })

  it("are all there: the parts of a GGUF", async () => {
    const part = gguf({ "general.architecture": "llama" }, 2)
    const first = written("big-00001-of-00002.gguf", part)
    expect(await textProblem(first)).toBe("is one of 2 parts, and big-00002-of-00002.gguf is not there")
    written("big-00002-of-00002.gguf", part.subarray(0, part.length - 1))
    expect(await textProblem(first)).toMatch(/big-00002-of-00002.gguf is cut short/)
    written("big-00002-of-00002.gguf", part)
    expect(await checkWeight({ entry: textEntry, role: "weights", path: first })).toMatchObject({
      problem: undefined,
      parts: [first, at("big-00002-of-00002.gguf")],
    })
    const { entry: text } = fakeDeployment({ id: "big" })
    const entry = { ...text, adapter: "llama-gguf", files: { weights: { source: basename(first) } } }
    expect(await Effect.runPromise(locate(at("catalog.json"), entry))).toMatchObject({
      files: { weights: first },
      parts: [first, at("big-00002-of-00002.gguf")],
    })
    expect(await textProblem(written(basename("other.gguf"), part))).toMatch(/its name does not end with/)
  })
})

/** Reads that a check makes, and the sum of their bytes: a measure of its work that does not depend on the machine. */
const readsOf = async (check: () => Promise<unknown>) => {
  const bytes = vi.spyOn(FileReader.prototype, "bytes")
  await check().finally(() => bytes.mockRestore())
  const { calls } = bytes.mock
  return { count: calls.length, sizeBytes: calls.reduce((sum, [count]) => sum + count, 0) }
}

it("answers whatever a header says, with no more reads than the file has bytes", async () => {
  const header = fc.uint8Array({ maxLength: 400 })
  await fc.assert(
    fc.asyncProperty(
      header,
      fc.constantFrom("GGUF\x03\0\0\0", "GGUF\x02\0\0\0", "\x08\x08\x3a", ""),
      async (bytes, magic) => {
        const whole = Buffer.concat([Buffer.from(magic, "latin1"), bytes])
        const path = written("fuzz.gguf", whole)
        for (const check of [checkGguf, checkOnnx]) {
          const { count, sizeBytes } = await readsOf(() => check(path))
          // The last read fails, because the file ends before it.
          expect(count).toBeLessThanOrEqual(whole.length + 1)
          expect(sizeBytes).toBeLessThanOrEqual(whole.length + 32 * 1024)
        }
      },
    ),
    { numRuns: 300 },
  )
})

it("reads the header of a vocabulary of 300,000 tokens without holding the event loop", async () => {
  const tokens = Buffer.concat(Array.from({ length: 300_000 }, (_, n) => name(`token ${n}`)))
  const key = Buffer.concat([name("tokenizer.ggml.tokens"), uint32(9), uint32(8), uint64(300_000), tokens])
  const header = Buffer.concat([Buffer.from("GGUF"), uint32(3), uint64(0), uint64(1), key])
  written("vocabulary.gguf", header)
  let turns = 0
  let running = true
  const count = () => {
    turns++
    if (running) setImmediate(count)
  }
  count()
  const found = await checkGguf(at("vocabulary.gguf"))
  running = false
  expect(found).toMatchObject({ tensors: 0 })
  expect(turns).toBeGreaterThan(header.length / (64 * 1024))
})
