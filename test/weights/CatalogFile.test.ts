// Mistakes in a catalog: every mistake is named with its line, its key and the nearest right name.
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, afterEach, describe, expect, it, vi } from "vitest"
import { builtInCatalog } from "#config/settings/NodeSettings.ts"
import { adapterFacts } from "#engines/AdapterFacts.ts"
import { regionCodesInForce } from "#store/files/RegionsFile.ts"
import { readCatalog } from "#weights/CatalogFile.ts"

const dir = mkdtempSync(join(tmpdir(), "edgewise-catalog-"))
afterAll(() => rmSync(dir, { recursive: true, force: true }))
const file = join(dir, "catalog.json")
mkdirSync(join(dir, "folder"))
writeFileSync(join(dir, "weights.gguf"), "GGUF")

/** Lines of the refusal, without the file's path; none where the catalog is accepted. */
const refusal = async (text: string, regions?: ReadonlyArray<string>): Promise<ReadonlyArray<string>> => {
  writeFileSync(file, text)
  const lines = await Effect.runPromise(
    readCatalog(file, { regions }).pipe(
      Effect.as([]),
      Effect.catch(({ lines = [] }) => Effect.succeed(lines)),
    ),
  )
  return lines.map((line) => line.replace(file, ""))
}

const llama = { adapter: "llama-gguf", files: { weights: { source: "weights.gguf" } } }
const entry = (more: object = {}) => ({
  id: "m",
  kind: "text",
  adapter: "fake",
  ownedBy: "t",
  created: 1,
  files: {},
  price: {},
  ...more,
})
const refused = (...entries: ReadonlyArray<object>) =>
  refusal(`{"models": [\n${entries.map((one) => JSON.stringify(one)).join(",\n")}\n]}`, ["local", "nyc-01"])

afterEach(() => vi.unstubAllEnvs())

it("names a fake adapter only where the environment allows it", async () => {
  expect(await refusal(JSON.stringify({ models: [entry()] }))).toEqual([])
  vi.stubEnv("EDGEWISE_FAKE_ENGINES", undefined)
  expect(await refusal(JSON.stringify({ models: [entry()] }))).toEqual([
    expect.stringContaining('adapter: "fake" is not an adapter; allowed are chatterbox-onnx, cohere-hf-onnx'),
  ])
})

it("takes the catalog of the product, and its regions", async () => {
  const codes = await Effect.runPromise(regionCodesInForce(""))
  const { models } = await Effect.runPromise(readCatalog(builtInCatalog, { regions: codes }))
  expect(models.length).toBe(
    (JSON.parse(readFileSync(builtInCatalog, "utf8")) as { models: unknown[] }).models.length,
  )
})

describe("an unknown key is named with the nearest right one", () => {
  it.each<[string, object, string]>([
    ["of the entry", { runtimes: {} }, 'runtimes: is not a known key; did you mean "runtime"?'],
    [
      "of options",
      { options: { contextToken: 5 } },
      'options.contextToken: is not a known key; did you mean "contextTokens"?',
    ],
    [
      "of options, too short",
      { options: { slot: 5 } },
      'options.slot: is not a known key; did you mean "slots"?',
    ],
    [
      "of a real adapter's options",
      { ...llama, options: { gpu_layers: 3 } },
      'options.gpu_layers: is not a known key; did you mean "gpuLayers"?',
    ],
    [
      "of a former version",
      { ...llama, options: { native: "addon" } },
      "options.native: is gone; remove it: llama.cpp is called through its C interface, which has no alternative",
    ],
    ["of runtime", { runtime: { thread: 1 } }, 'runtime.thread: is not a known key; did you mean "threads"?'],
    [
      "of price",
      { price: { perMinuit: 1 } },
      'price.perMinuit: is not a known key; did you mean "perMinute"?',
    ],
    [
      "of a file",
      { ...llama, files: { weights: { source: "weights.gguf", sha: "" } } },
      'files.weights.sha: is not a known key; did you mean "sha256"?',
    ],
    [
      "of speech",
      { kind: "speech", adapter: "fake-speech", speech: { maxCharacters: 1, voices: [], voice: "a" } },
      'speech.voice: is not a known key; did you mean "voices"?',
    ],
    [
      "of transcription",
      { kind: "transcription", adapter: "fake-transcription", transcription: { language: "en" } },
      "transcription.language: is not a known key; allowed are defaultLanguage, draft",
    ],
    [
      "a file's role",
      { ...llama, files: { weight: { source: "weights.gguf" }, weights: { source: "weights.gguf" } } },
      'files.weight: is not a file of llama-gguf; did you mean "weights"?',
    ],
  ])("%s", async (_, more, line) => {
    expect(await refused(entry(more))).toEqual([expect.stringMatching(/^:2:\d+: m: /)])
    expect((await refused(entry(more)))[0]).toContain(`m: ${line}`)
  })

  it("at the top", async () => {
    expect(await refusal(`{"models": [${JSON.stringify(entry())}],\n "model": 1}`)).toEqual([
      ':2:2: model: is not a known key; did you mean "models"?',
    ])
  })
})

/** Sources for all roles of an adapter. */
const sourcesFor = (adapter: string) =>
  Object.fromEntries(
    Object.entries(adapterFacts[adapter]!.files).map(([role, what]) => [
      role,
      { source: what === "folder" ? "folder" : "weights.gguf" },
    ]),
  )
const textAdapters = Object.entries(adapterFacts)
  .filter(([, { kind }]) => kind === "text")
  .map(([name]) => name)
  .join(", ")

describe("a wrong value is named with what is allowed", () => {
  it.each<[string, object, string]>([
    [
      "zero slots",
      { options: { slots: 0 } },
      "options.slots: 0 is not allowed; allowed is a value between 1 and 100000",
    ],
    [
      "zero slots of a real adapter",
      { ...llama, options: { slots: 0 } },
      "options.slots: 0 is not allowed; allowed is a value between 1 and 256",
    ],
    ["a number as text", { created: "1" }, 'created: "1" is not allowed; allowed is a number'],
    ["half a second", { created: 1.5 }, "created: 1.5 is not allowed; allowed is an integer"],
    ["no text", { ownedBy: 3 }, "ownedBy: 3 is not allowed; allowed is a text"],
    ["no object", { runtime: [] }, "runtime: [] is not allowed; allowed is an object"],
    ["no list", { regions: "*" }, 'regions: "*" is not allowed; allowed is a list'],
    ["no switch", { demonstration: "yes" }, 'demonstration: "yes" is not allowed; allowed is true or false'],
    [
      "a kind",
      { kind: "txt" },
      'kind: "txt" is not allowed; allowed is one of "text", "speech", "transcription", "embedding", "detection"; did you mean "text"?',
    ],
    ["an id", { id: "a b" }, 'id: "a b" is not allowed; allowed is 1 to 128 letters'],
    ["an id of three parts", { id: "a/b/c" }, 'id: "a/b/c" is not allowed'],
    [
      "an id that is a path of the API",
      { id: "status" },
      'id: "status" cannot be an id: /v1/models/status is another path of the API',
    ],
    [
      "an adapter",
      { adapter: "lama-gguf" },
      'adapter: "lama-gguf" is not an adapter; did you mean "llama-gguf"?',
    ],
    [
      "an adapter of another kind",
      { adapter: "fake-speech" },
      `adapter: fake-speech runs speech models, and kind is "text"; adapters of text models are ${textAdapters}`,
    ],
    [
      "an adapter of another kind, whatever options and files it reads",
      { adapter: "kokoro-onnx", options: { contextTokens: 8_192 }, files: llama.files },
      `adapter: kokoro-onnx runs speech models, and kind is "text"; adapters of text models are ${textAdapters}`,
    ],
    [
      "an adapter misspelled, whatever options and files it reads",
      { ...llama, adapter: "gguf", options: { contextTokens: 8_192 } },
      'adapter: "gguf" is not an adapter; allowed are ',
    ],
    [
      "an adapter of its kind that reads other files and options",
      {
        kind: "transcription",
        adapter: "cohere-hf-onnx",
        options: { variableLength: true },
        files: sourcesFor("whisper-hf-onnx"),
      },
      "adapter: cohere-hf-onnx reads other files, these are those of whisper-hf-onnx; adapters of transcription models are ",
    ],
    [
      "the same with a folder",
      { kind: "speech", adapter: "chatterbox-onnx", files: sourcesFor("kokoro-onnx") },
      "adapter: chatterbox-onnx reads other files, these are those of kokoro-onnx; adapters of speech models are ",
    ],
    [
      "speech limits of a text model",
      { speech: { maxCharacters: 5, voices: [] } },
      'speech: is for speech models only, and kind is "text"',
    ],
    ["a region", { regions: ["nyc-02"] }, 'regions[0]: "nyc-02" is not a region; did you mean "nyc-01"?'],
    [
      "a sum",
      { ...llama, files: { weights: { source: "weights.gguf", sha256: "abc" } } },
      'files.weights.sha256: "abc" is not allowed; allowed is 64 lower-case hex digits',
    ],
    [
      "a hub file",
      { ...llama, files: { weights: { source: "hf:Qwen" } } },
      'files.weights.source: "hf:Qwen" is not hf:owner/repo@commit/file',
    ],
    [
      "a folder as weights",
      { ...llama, files: { weights: { source: "folder" } } },
      'files.weights.source: "folder" is a folder; name the file in it',
    ],
    ["no weights", { adapter: "llama-gguf" }, "files.weights: is missing; llama-gguf needs weights"],
    ["a GPU of the other engines", { ...llama, options: { ep: "cuda" } }, "options.ep: is not a known key"],
    [
      "a GPU that is none",
      { ...llama, options: { gpu: "rocm" } },
      'options.gpu: "rocm" is not allowed; allowed is one of "off", "auto"',
    ],
  ])("%s", async (_, more, line) => {
    const lines = await refused(entry(more))
    expect(lines).toHaveLength(1)
    expect(lines[0]).toContain(line)
    expect(lines[0]).toMatch(/^:2:\d+: /)
  })

  it("a file as the folder of voices", async () => {
    const files = { model: { source: "x" }, tokenizer: { source: "x" }, voices: { source: "weights.gguf" } }
    expect(await refused(entry({ kind: "speech", adapter: "kokoro-onnx", files }))).toEqual([
      expect.stringContaining('files.voices.source: "weights.gguf" is a file; a folder is needed here'),
    ])
  })
})

it("names all mistakes at once, in the order of the file, 20 of them at most", async () => {
  const lines = await refused(
    entry({ id: "twin" }),
    entry({ id: "twin", price: { perMinute: -1 } }),
    entry({ id: 5, files: undefined, runtimes: 1 }),
    { adapter: "fake" },
  )
  expect(lines.slice(0, 3)).toEqual([
    ':3:7: twin: id: "twin" is also the id of the model on line 2',
    expect.stringContaining(
      "twin: price.perMinute: -1 is not allowed; allowed is a value greater than or equal to 0",
    ),
    ":4:1: models[2]: files: is missing",
  ])
  const many = await refused(...Array.from({ length: 30 }, (_, n) => entry({ id: `m${n}`, kindd: 1 })))
  expect(many).toHaveLength(21)
  expect(many.at(-1)).toBe(": and 10 more mistakes")
})

it("an empty catalog, an empty file, a key twice and a file that is not JSON are refused", async () => {
  expect(await refusal('{"models": []}')).toEqual([":1:12: models: the catalog has no model"])
  expect(await refusal("")).toEqual([":1:1: the file is empty"])
  expect(await refusal("[]")).toEqual([":1:1: [] is not allowed; allowed is an object"])
  expect(await refusal("{}")).toEqual([":1:1: models: is missing"])
  const twice = JSON.stringify(entry()).replace('"created"', '"kind":"text","created"')
  expect(await refusal(`{"models": [${twice}]}`)).toEqual([":1:68: m: kind: this key occurs twice"])
  expect(await refusal('{"models": [,]}')).toEqual([
    ":1:13: not valid JSON: a value is expected here; is there an extra comma?",
  ])
})

it("takes ids as model hubs write them, and what a graph keeps outside of its file", async () => {
  expect(await refused(entry({ id: "Qwen/Qwen3-0.6B" }), entry({ id: "llm-3.5-27b" }))).toEqual([])
  const side = Object.fromEntries(
    Object.keys(adapterFacts["cohere-hf-onnx"]!.files).map((role) => [role, { source: role }]),
  )
  const files = { ...side, decoderData: { source: "decoder.onnx_data" } }
  expect(await refused(entry({ kind: "transcription", adapter: "cohere-hf-onnx", files }))).toEqual([])
})

it("what is not there is not the catalog's mistake", async () => {
  const files = { weights: { source: "missing.gguf" } }
  expect(await refused(entry({ ...llama, files }))).toEqual([])
})

describe("conversations", () => {
  const voice = {
    ...entry({ id: "voice", kind: "speech", adapter: "fake-speech" }),
    speech: { maxCharacters: 10, voices: ["v"] },
  }
  const models = [
    entry({ id: "text", aliases: ["other"] }),
    voice,
    entry({ id: "ears", kind: "transcription", adapter: "fake-transcription", regions: ["nyc-01"] }),
  ]
  const conversation = { transcription: "ears", text: "text", speech: "voice" }
  const talk = (parts: object = {}, more: object = {}) => ({
    id: "talk",
    kind: "conversation",
    ownedBy: "t",
    created: 1,
    regions: ["nyc-01"],
    conversation: { ...conversation, ...parts },
    ...more,
  })

  it("join models of the catalog, in every position of it", async () => {
    expect(await refused(...models, talk({ voice: "v", session: { instructions: "Be brief." } }))).toEqual([])
    expect(await refused(talk({ voice: "alloy" }), ...models)).toEqual([])
  })

  it.each([
    [{ text: "txet" }, {}, 'conversation.text: "txet" is not a model of this catalog; did you mean "text"?'],
    [{ text: "other" }, {}, "conversation.text: other is an alias; name the id, text"],
    [{ text: "voice" }, {}, "conversation.text: voice is a speech model; a text model is needed here"],
    [{ voice: "w" }, {}, "conversation.voice: w is not one of the voices v"],
    [{ session: { audio: { output: { voice: "v" } } } }, {}, "voice: stands in conversation.voice"],
    [{ session: { instruction: "" } }, {}, "conversation.session.instruction: is not a known key"],
    [{ session: { audio: { output: { speed: 9 } } } }, {}, "conversation.session.audio.output.speed: 9"],
    [{ speech: undefined }, {}, "conversation.speech: is missing"],
    [{}, { regions: ["*"] }, "conversation.transcription: ears is not deployed in all regions"],
    [{}, { aliases: ["text"] }, "aliases[0]: text already names text"],
    [{}, { adapter: "fake" }, "adapter: is not a known key"],
    [{}, { id: "text" }, '"text" is also the id of the model on line'],
  ])("are refused with %j %j", async (parts, more, problem) => {
    for (const entries of [
      [talk(parts, more), ...models],
      [...models, talk(parts, more)],
    ]) {
      const lines = await refused(...entries)
      expect(lines.join("\n")).toContain(problem)
      // At its place in the file, or, of two entries with one name, at the second.
      const at = entries.findIndex(({ kind }) => kind === "conversation") + 2
      expect(lines.every((line) => line.startsWith(`:${at}:`) || line.includes("the model on line"))).toBe(
        true,
      )
    }
  })

  it("are the only entries with a conversation in them", async () => {
    expect((await refused(entry({ conversation }))).join()).toContain(
      "conversation: is for entries of kind conversation only",
    )
  })
})
