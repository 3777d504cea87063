// `edgewise models add` for a model of each family, from a hub, on a running node: its answer over HTTP is right, or where generated
// weights have no right answer, that of the same files in a catalog that was written by hand.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, expect, it } from "vitest"
import { builtInCatalog } from "#config/settings/NodeSettings.ts"
import { wavBytes } from "../../support/audio/AudioFiles.ts"
import { clipBytes, clips } from "../../support/audio/SpeechClips.ts"
import { wordErrorRate } from "../../support/audio/WordErrorRate.ts"
import { transcribe } from "../../support/clients/TranscriptionClient.ts"
import { edgewise, type NodeProcess, startProcess } from "../../support/nodes/NodeProcess.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"
import { dataUrl } from "../../support/pictures/PictureFiles.ts"
import { cohereSamples, cohereText, commit, type HubOfFamilies, startHubOfFamilies } from "./HubOfFamilies.ts"

let families: HubOfFamilies
let node: NodeProcess
/** The same generated files in a catalog that was written by hand. */
let byHand: TestNode

const text = (file: string, mmproj: string) => ({
  adapter: "llama-gguf",
  kind: "text",
  files: { weights: { source: file }, mmproj: { source: mmproj } },
})

beforeAll(async () => {
  families = await startHubOfFamilies()
  const { chatterbox, folder } = families.generated
  byHand = await startNode({
    models: [
      { id: "smolvlm-256m", ...text(join(folder, "smol/text.gguf"), join(folder, "smol/mmproj.gguf")) },
      { id: "qwen3-vl-2b", ...text(join(folder, "qwen/text.gguf"), join(folder, "qwen/mmproj.gguf")) },
      {
        id: "chatterbox",
        kind: "speech",
        adapter: "chatterbox-onnx",
        files: Object.fromEntries(Object.entries(chatterbox).map(([role, source]) => [role, { source }])),
        speech: { maxCharacters: 850, voices: ["default"], cloning: true },
      },
      {
        id: "qwen3-embedding-0.6b",
        kind: "embedding",
        adapter: "llama-embedding",
        files: { weights: { source: join(folder, "bert-mean-64.gguf") } },
      },
    ],
  })
  node = await startProcess({ env: { EDGEWISE_CATALOG: builtInCatalog } })
})
afterAll(async () => {
  // Not killed: its engines would still write into the data directory while that is removed.
  node?.signal("SIGTERM")
  await node?.exited
  await Promise.all([node?.dispose(), byHand?.stop()])
  await families?.stop()
})

const models = (...args: ReadonlyArray<string>) =>
  edgewise(["models", ...args], {
    EDGEWISE_DATA_DIR: node.dataDir,
    EDGEWISE_PORT: String(node.port),
    HF_ENDPOINT: families.hub.endpoint,
  })

interface Added {
  readonly id: string
  readonly catalog: string
  readonly entry: {
    readonly adapter: string
    readonly files: Readonly<Record<string, { readonly source: string }>>
  }
  readonly files: ReadonlyArray<{ readonly checked_by: string | null; readonly sha256: string }>
  readonly notes: ReadonlyArray<string>
  readonly node: string
}

const added = async (...args: ReadonlyArray<string>): Promise<Added> => {
  const { status, stderr, stdout } = await models("add", ...args, "--json")
  expect([status, status === 0 ? "" : stderr]).toEqual([0, ""])
  const record = JSON.parse(stdout) as Added
  expect(record.node).toBe("served")
  return record
}

interface Place {
  readonly base: string
  readonly key: string
}
const here = (): Place => ({ base: node.base, key: node.devKey })
const there = (): Place => ({ base: byHand.base, key: byHand.keys.dev })

const post = async ({ base, key }: Place, path: string, body: object): Promise<Response> => {
  const response = await fetch(base + path, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  })
  if (response.status !== 200) throw new Error(`${path}: ${response.status} ${await response.text()}`)
  return response
}

const chat = async (place: Place, model: string, content: unknown, more: object = {}): Promise<string> => {
  const body = { model, temperature: 0, messages: [{ role: "user", content }], ...more }
  const reply = (await (await post(place, "/v1/chat/completions", body)).json()) as {
    readonly choices: ReadonlyArray<{ readonly message: { readonly content: string } }>
  }
  return reply.choices[0]?.message.content ?? ""
}

const picture = dataUrl(readFileSync(new URL("../../../models/vision-demo/shapes.png", import.meta.url)))
const about = (question: string) => [
  { type: "text", text: question },
  { type: "image_url", image_url: { url: picture } },
]

it("Qwen3: the preset is named, pulled, written with its sum, and answers", async () => {
  const record = await added("qwen3-0.6b")
  expect(record.catalog).toBe(join(node.dataDir, "models.jsonc"))
  expect(record.entry.files.weights).toMatchObject({
    source: `hf:Qwen/Qwen3-0.6B-GGUF@${commit}/Qwen3-0.6B-Q8_0.gguf`,
    sha256: record.files[0]?.sha256,
    sizeBytes: 2_764_864,
  })
  // The hub of this test has other weights under the published name.
  expect(record.notes).toEqual([expect.stringContaining("the publisher has replaced Qwen3-0.6B-Q8_0.gguf")])
  const text = readFileSync(record.catalog, "utf8")
  expect(text).toContain(
    "// llama, Q8_0, trained on contexts of 8192 tokens. From hf:Qwen/Qwen3-0.6B-GGUF, licence apache-2.0.",
  )
  expect(await chat(here(), "qwen3-0.6b", "What is the capital of Italy?")).toBe(
    "The capital of Italy is Rome.",
  )
})

it("Silero VAD and Smart Turn: the published graphs are found, and load", async () => {
  for (const [name, adapter, file] of [
    ["silero-vad", "silero-vad-onnx", "onnx-community/silero-vad@*/onnx/model.onnx"],
    ["smart-turn", "smart-turn-onnx", "pipecat-ai/smart-turn-v3@*/smart-turn-v3.2-cpu.onnx"],
  ] as const) {
    const record = await added(name)
    expect(record.entry.adapter).toBe(adapter)
    expect(record.entry.files.model?.source).toBe(`hf:${file.replace("*", commit)}`)
    const { status, stderr } = await models("load", name)
    expect([status, status === 0 ? "" : stderr]).toEqual([0, ""])
  }
})

it("Whisper: ears that are added are OpenAI's whisper-1 from then on", async () => {
  const record = await added("whisper-base")
  expect(record.entry.adapter).toBe("whisper-hf-onnx")
  const [clip] = clips
  if (clip === undefined) throw new Error("no clip")
  for (const model of ["whisper-base", "whisper-1"]) {
    const reply = await transcribe(here(), new Uint8Array(clipBytes(clip)), { fields: [["model", model]] })
    expect(reply.status).toBe(200)
    const { text } = (await reply.json()) as { readonly text: string }
    expect(wordErrorRate([{ reference: clip.text, heard: text }])).toBeLessThan(0.3)
  }
})

it("Kokoro: a folder of voices is pulled file by file, and what it says is understood", async () => {
  const record = await added("kokoro")
  expect(record.entry.files.voices?.source).toBe(`hf:onnx-community/Kokoro-82M-v1.0-ONNX@${commit}/voices`)
  expect(record.files).toHaveLength(10)
  const sentence = "The quick brown fox jumps over the lazy dog."
  const body = { model: "kokoro", input: sentence, voice: "am_michael", response_format: "wav" }
  const spoken = await post(here(), "/v1/audio/speech", body)
  const audio = new Uint8Array(await spoken.arrayBuffer())
  const again = await transcribe(here(), audio, { fields: [["model", "stt-large-v3-turbo"]] })
  const { text } = (await again.json()) as { readonly text: string }
  expect(wordErrorRate([{ reference: sentence, heard: text }])).toBeLessThan(0.5)
})

it("Cohere Transcribe: generated weights say what they were made to say", async () => {
  const record = await added("cohere-transcribe")
  expect(record.entry.adapter).toBe("cohere-hf-onnx")
  const tone = Int16Array.from({ length: cohereSamples }, (_, i) => 8_000 * Math.sin(i / 9))
  const reply = await transcribe(here(), new Uint8Array(wavBytes(tone, 16_000, "16")), {
    fields: [["model", "cohere-transcribe"]],
  })
  expect(await reply.json()).toMatchObject({ text: cohereText })
})

it("Chatterbox: the same audio as from a catalog written by hand, byte by byte", async () => {
  const record = await added("chatterbox")
  expect(record.entry.files.cangjie?.source).toContain("/Cangjie5_TC.json")
  const body = {
    model: "chatterbox",
    input: "Good morning to you all.",
    voice: "default",
    response_format: "wav",
  }
  const [mine, theirs] = await Promise.all(
    [here(), there()].map(async (place) =>
      Buffer.from(await (await post(place, "/v1/audio/speech", body)).arrayBuffer()),
    ),
  )
  expect(mine?.length).toBeGreaterThan(1_000)
  expect(mine?.equals(theirs ?? Buffer.alloc(0))).toBe(true)
})

it.each(["smolvlm-256m", "qwen3-vl-2b"])(
  "%s: the tower is found beside the text model, and pictures count",
  async (name) => {
    const record = await added(name)
    expect(record.entry.files.mmproj?.source).toContain("mmproj-")
    const [mine, theirs] = await Promise.all(
      [here(), there()].map((place) => chat(place, name, about("What is it?"), { max_tokens: 12 })),
    )
    expect(mine).not.toBe("")
    expect(mine).toBe(theirs)
    expect(mine).not.toBe(await chat(here(), name, "What is it?", { max_tokens: 12 }))
  },
)

it("a repository without a preset: a tower without a name, and a right answer about a picture", async () => {
  const record = await added("hf:acme/sight-GGUF", "--as", "llm-3.6-35b-a3b")
  expect(record.id).toBe("sight")
  expect(record.entry.files.mmproj?.source).toContain("mmproj-F16.gguf")
  for (const model of ["sight", "llm-3.6-35b-a3b"])
    expect(await chat(here(), model, about("What colour is the circle?"))).toBe("Red.")
})

it("embeddings: the same vector as from a catalog written by hand", async () => {
  const record = await added("qwen3-embedding-0.6b")
  expect(record.entry.adapter).toBe("llama-embedding")
  const vectors = await Promise.all(
    [here(), there()].map(async (place) => {
      const reply = await post(place, "/v1/embeddings", { model: "qwen3-embedding-0.6b", input: "a fox" })
      return ((await reply.json()) as { data: [{ embedding: ReadonlyArray<number> }] }).data[0].embedding
    }),
  )
  expect(vectors[0]?.length).toBe(64)
  expect(vectors[0]).toEqual(vectors[1])
})

it("folders of this machine: an export of Whisper, and one of Kokoro with its voices", async () => {
  const at = (path: string) => fileURLToPath(new URL(`../../../models/${path}`, import.meta.url))
  const speech = await added(at("kokoro-demo"), "--id", "near-voice")
  expect(speech.entry.files.voices?.source).toBe(at("kokoro-demo/voices"))
  await added(at("whisper-demo-en"), "--id", "near-ears")
  const sentence = "The quick brown fox jumps over the lazy dog."
  const body = { model: "near-voice", input: sentence, voice: "am_michael", response_format: "wav" }
  const audio = new Uint8Array(await (await post(here(), "/v1/audio/speech", body)).arrayBuffer())
  const reply = await transcribe(here(), audio, { fields: [["model", "near-ears"]] })
  const { text } = (await reply.json()) as { readonly text: string }
  expect(wordErrorRate([{ reference: sentence, heard: text }])).toBeLessThan(0.5)
})

it("every added model is listed before the built-in ones, and removing one brings the built-in one back", async () => {
  const list = async () =>
    (
      JSON.parse((await models("list", "--json")).stdout) as {
        models: ReadonlyArray<{ id: string; from: string }>
      }
    ).models
  const before = await list()
  const own = before.filter(({ from }) => from !== "built-in").map(({ id }) => id)
  expect(before.slice(0, own.length).map(({ id }) => id)).toEqual(own)
  expect(before.map(({ id }) => id)).not.toContain("llm-3.6-35b-a3b")
  const removed = await models("remove", "sight", "--files", "--json")
  expect(JSON.parse(removed.stdout)).toMatchObject({
    node: "served",
    back: ["llm-3.6-35b-a3b"],
    deleted: expect.any(Array),
  })
  expect((JSON.parse(removed.stdout) as { deleted: ReadonlyArray<string> }).deleted).toHaveLength(2)
  const after = await list()
  expect(after).toContainEqual(expect.objectContaining({ id: "llm-3.6-35b-a3b", from: "built-in" }))
  expect(await chat(here(), "llm-3.6-35b-a3b", about("What colour is the circle?"))).toBe("Red.")
})
