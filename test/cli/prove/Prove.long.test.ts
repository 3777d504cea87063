// `edgewise prove` against a hub on this machine, which has the built-in weights in the published layouts, and references for them:
// right files pass every check, and of each wrong file the row that fails says what is wrong with it.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { hostname, userInfo } from "node:os"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { ProofDocument, Row } from "#cli/prove/Document.ts"
import { publicReferences } from "#cli/prove/PublicReferences.ts"
import { clipBytes, clips } from "../../support/audio/SpeechClips.ts"
import { edgewise } from "../../support/nodes/NodeProcess.ts"
import { temporaryDir } from "../../support/nodes/TestNode.ts"
import { type FakeHub, sha256, startHub } from "../../support/servers/FakeHub.ts"
import { builtInFamilies, commit, type Files } from "../models/HubOfFamilies.ts"

const whisper = `onnx-community/whisper-base/${commit}`
const kokoro = `onnx-community/Kokoro-82M-v1.0-ONNX/${commit}`
const qwen = `Qwen/Qwen3-0.6B-GGUF/${commit}`
const clip = clips[0]!

const dir = temporaryDir()
let hub: FakeHub
let right: Files
let files: Files
let references = ""

/** What is known of the built-in weights, from their cards and files; the mel table and Kokoro's ids are the public ones. */
const referencesOf = (own: Files) => {
  const vocabulary = JSON.parse(own[`${whisper}/vocab.json`]!.toString()) as Record<string, number>
  const sums = (path: string, name: string) => ({
    from: "the files of this test",
    files: { [name]: sha256(own[`${path}/${name}`]!) },
  })
  return {
    "whisper-base": {
      sums: sums(whisper, "onnx/encoder_model.onnx"),
      dimensions: { from: "models/whisper-demo-en/README.md", values: { d_model: 160, decoder_layers: 3 } },
      tokens: {
        from: "models/whisper-demo-en/vocab.json",
        texts: [{ text: "Go on", ids: ["G", "o", "Ġ", "o", "n"].map((letter) => vocabulary[letter]!) }],
      },
      mel: publicReferences["whisper-base"]!.mel,
      recording: {
        from: "models/whisper-demo-en/eval",
        repository: "datasets/acme/clips",
        revision: commit,
        path: "clip.wav",
        sha256: sha256(clipBytes(clip)),
        text: clip.text,
        phrases: [
          clip.text
            .toLowerCase()
            .replace(/[^a-z ]/g, "")
            .split(" ")
            .slice(0, 2)
            .join(" "),
        ],
      },
    },
    kokoro: {
      dimensions: {
        from: "models/kokoro-demo/README.md",
        values: { english_voices: 8, voice_bytes: 522_240 },
      },
      tokens: publicReferences.kokoro!.tokens,
      phonemes: publicReferences.kokoro!.phonemes,
      sums: sums(kokoro, "onnx/model.onnx"),
    },
    "qwen3-0.6b": {
      sums: sums(qwen, "Qwen3-0.6B-Q8_0.gguf"),
      dimensions: {
        from: "models/llama-demo/README.md",
        values: {
          architecture: "llama",
          block_count: 5,
          embedding_length: 192,
          head_count_kv: 3,
          vocabulary: 2560,
        },
      },
      // Bytes come first, in the order of GPT-2, and each digit is a token.
      tokens: { from: "models/llama-demo/README.md", texts: [{ text: "123", ids: [16, 17, 18] }] },
      questions: [{ ask: "What is the capital of Italy?", contains: ["Rome"] }],
    },
  }
}

beforeAll(async () => {
  right = { ...builtInFamilies(), [`datasets/acme/clips/${commit}/clip.wav`]: clipBytes(clip) }
  files = { ...right }
  hub = await startHub(files)
  references = join(dir.path, "references.json")
  writeFileSync(references, JSON.stringify(referencesOf(right)))
})
afterAll(async () => {
  await hub.stop()
  dir.remove()
})

let runs = 0

const prove = async (changes: Files = {}, more: ReadonlyArray<string> = []) => {
  hub.reset()
  for (const [path, bytes] of Object.entries({ ...right, ...changes })) files[path] = bytes
  const out = join(dir.path, `proof-${runs}.json`)
  const { status, stdout } = await edgewise(
    ["prove", "--references", references, "--out", out, "--seconds", "0", ...more],
    { EDGEWISE_DATA_DIR: join(dir.path, `data-${runs++}`), HF_ENDPOINT: hub.endpoint },
  )
  const text = readFileSync(out, "utf8")
  return { status, stdout, text, document: JSON.parse(text) as ProofDocument }
}

const failedOf = ({ models }: ProofDocument): Readonly<Record<string, ReadonlyArray<string>>> =>
  Object.fromEntries(
    models.map(({ name, rows }) => [
      name,
      rows.filter(({ check, verdict }) => verdict === "fail" && check !== "memory").map(({ check }) => check),
    ]),
  )

const rowOf = ({ models }: ProofDocument, model: string, name: string): Row | undefined =>
  models.find((one) => one.name === model)?.rows.find(({ check }) => check === name)

it("passes right weights of every family, and writes a result without names and places of this machine", async () => {
  const folder = join(dir.path, "recordings/1/2")
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, "1-2-0001.wav"), clipBytes(clip))
  writeFileSync(join(folder, "1-2.trans.txt"), `1-2-0001 ${clip.text.toUpperCase()}\n`)
  const { document, status, stdout, text } = await prove({}, ["--recordings", join(dir.path, "recordings")])
  // How much memory an engine holds is a figure of the machine.
  const judged = document.models.map(({ name, rows }) => ({
    name,
    rows: rows.filter(({ check }) => check !== "memory"),
  }))
  expect(judged.flatMap(({ rows }) => rows.filter(({ verdict }) => verdict === "fail"))).toEqual([])
  expect(status).toBe(document.ok ? 0 : 1)
  const passed = Object.fromEntries(
    judged.map(({ name, rows }) => [
      name,
      rows.filter(({ verdict }) => verdict === "pass").map(({ check }) => check),
    ]),
  )
  const always = ["files", "weights", "load", "tensors", "tokenizer"]
  expect(passed).toEqual({
    "whisper-base": [...always, "mel table", "transcript"],
    kokoro: [...always, "phonemes", "pace", "understood"],
    "qwen3-0.6b": [...always, "answers", "repeat"],
  })
  expect(stdout).toMatch(/^ +recordings +- +- +\d+\.\d % word errors: \d+ of \d+ words, 1 recording, \d+ s$/m)
  expect(stdout).toContain("\n[1] the files of this test\n")
  expect(document.hub).toBe("another")
  for (const name of [dir.path, hostname(), process.cwd(), `/${userInfo().username}/`, clip.text])
    expect(text).not.toContain(name)
})

/** The bytes with a text in place of another one of the same length. */
const replaced = (bytes: Buffer, from: string, to: string): Buffer => {
  const copy = Buffer.from(bytes)
  for (let at = copy.indexOf(from); at >= 0; at = copy.indexOf(from, at + 1)) copy.write(to, at, "latin1")
  return copy
}

const json = (path: string) => JSON.parse(right[path]!.toString()) as Record<string, unknown>
const bytesOf = (value: unknown): Buffer => Buffer.from(JSON.stringify(value))

/** A tokenizer.json in which two symbols have each other's ids. */
const swapped = (path: string, one: string, other: string): Buffer => {
  const table = json(path) as { model: { vocab: Record<string, number> } }
  const { vocab } = table.model
  const [first, second] = [vocab[one]!, vocab[other]!]
  Object.assign(vocab, { [one]: second, [other]: first })
  return bytesOf(table)
}

describe("a wrong file fails in the row that says what is wrong", () => {
  it("a tensor of another name, a symbol table with swapped ids, weights of the same form with other numbers", async () => {
    const decoder = `${whisper}/onnx/decoder_model_merged.onnx`
    const gguf = `${qwen}/Qwen3-0.6B-Q8_0.gguf`
    const zeroed = Buffer.from(right[gguf]!)
    zeroed.fill(0, Math.floor(zeroed.length / 2))
    const { document, status } = await prove({
      [decoder]: replaced(right[decoder]!, "encoder_hidden_states", "encoder_hidden_statex"),
      [`${kokoro}/tokenizer.json`]: swapped(`${kokoro}/tokenizer.json`, "ə", "ɪ"),
      [gguf]: zeroed,
    })
    expect(status).toBe(1)
    const failed = failedOf(document)
    expect(failed["whisper-base"]).toEqual(["load"])
    expect(rowOf(document, "whisper-base", "load")?.found).toContain("unknown input encoder_hidden_statex")
    expect(failed.kokoro).toEqual(["tokenizer"])
    expect(failed["qwen3-0.6b"]).toEqual(["weights", "answers"])
  })

  it("a mel table of other numbers, voices of another size, a vocabulary in another order", async () => {
    const voice = Object.keys(right).find((path) => path.startsWith(`${kokoro}/voices/af_`))!
    const gguf = `${qwen}/Qwen3-0.6B-Q8_0.gguf`
    // Two tokens of one character, each a length of 8 bytes and the character.
    const token = (letter: string) => `\u0001\0\0\0\0\0\0\0${letter}`
    const vocabulary = Buffer.from(right[gguf]!)
    const [one, two] = [
      vocabulary.indexOf(token("1"), 0, "latin1"),
      vocabulary.indexOf(token("2"), 0, "latin1"),
    ]
    vocabulary.write("2", one + 8, "latin1")
    vocabulary.write("1", two + 8, "latin1")
    const table = Array.from({ length: 80 }, () => new Array(201).fill(0.001))
    const { document } = await prove({
      [`${whisper}/preprocessor_config.json`]: bytesOf({
        ...json(`${whisper}/preprocessor_config.json`),
        mel_filters: table,
      }),
      [voice]: right[voice]!.subarray(0, 1024 * 255),
      [gguf]: vocabulary,
    })
    const failed = failedOf(document)
    expect(failed["whisper-base"]).toEqual(["mel table"])
    expect(failed.kokoro?.[0]).toMatch(/load|tensors/)
    expect(failed["qwen3-0.6b"]).toContain("tokenizer")
  })

  it("windows of another length, sizes of another network, a tokenizer with swapped ids", async () => {
    const { document } = await prove(
      {
        [`${whisper}/preprocessor_config.json`]: bytesOf({
          ...json(`${whisper}/preprocessor_config.json`),
          n_fft: 512,
        }),
        [`${whisper}/config.json`]: bytesOf({ ...json(`${whisper}/config.json`), decoder_layers: 4 }),
        [`${whisper}/tokenizer.json`]: swapped(`${whisper}/tokenizer.json`, "G", "o"),
      },
      ["whisper-base"],
    )
    expect(failedOf(document)["whisper-base"]).toEqual(
      expect.arrayContaining(["tensors", "tokenizer", "mel table"]),
    )
    expect(rowOf(document, "whisper-base", "tensors")).toMatchObject({
      found: "decoder_layers 4",
      expected: "decoder_layers 3",
    })
    expect(rowOf(document, "whisper-base", "mel table")?.found).toContain("windows of 512")
  })
})
