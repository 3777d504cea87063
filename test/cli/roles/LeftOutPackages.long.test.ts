// A copy of the product without the packages that an operator may leave out: it starts, says what does not work, and
// refuses the requests that need them.
import { cpSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { chirp, wavBytes } from "../../support/audio/AudioFiles.ts"
import { needs } from "../../support/groups/Needs.ts"
import { builtInModel } from "../../support/nodes/BuiltInModels.ts"
import { type NodeProcess, startProcess } from "../../support/nodes/NodeProcess.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { dataUrl, plain, png } from "../../support/pictures/PictureFiles.ts"

const root = fileURLToPath(new URL("../../..", import.meta.url))
const copy = mkdtempSync(join(tmpdir(), "edgewise-left-out-"))
afterAll(() => rmSync(copy, { recursive: true, force: true }))
// And those that only a setting loads, which is not set here.
const leftOut = [
  "node-av",
  "phonemizer",
  "@echogarden/espeak-ng-emscripten",
  "pinyin-pro",
  "lindera-wasm-nodejs-ipadic",
  "aws4fetch",
]

/** Links every package but these. */
const linkPackages = (scope = ""): void => {
  const folder = join("node_modules", scope)
  mkdirSync(join(copy, folder), { recursive: true })
  for (const name of readdirSync(join(root, folder))) {
    const full = scope === "" ? name : `${scope}/${name}`
    if (scope === "" && name.startsWith("@")) linkPackages(name)
    else if (!leftOut.includes(full)) symlinkSync(join(root, folder, name), join(copy, folder, name))
  }
}
beforeAll(() => {
  for (const name of ["src", "actors", "engines", "models/turns-demo", "package.json"])
    cpSync(join(root, name), join(copy, name), { recursive: true })
  linkPackages()
})

const kokoro = builtInModel("tts-82m")
const clone = builtInModel("tts-3b-ml")
const asian = {
  ...kokoro,
  id: "asian",
  speech: { maxCharacters: 100, voices: ["zf_xiaoxiao", "jf_alpha"], languages: ["zh", "ja"] },
}
const seeing = { ...fakeModel, id: "seeing", options: { pictures: { maxPixels: 10_000 } } }
const listens = { id: "listens", kind: "transcription", adapter: "fake-transcription" }

const start = (env: Readonly<Record<string, string>>) =>
  startProcess({
    main: join(copy, "src", "main.ts"),
    models: [fakeModel, kokoro, asian, clone, listens, seeing],
    // The packages of the copy are links, and a confined process may not follow them.
    env: { EDGEWISE_CONFINE: "false", EDGEWISE_LOG_LEVEL: "none", ...env },
  })

const wav = wavBytes(chirp(16_000, 16_000), 16_000, "16")

const transcribe = (node: NodeProcess) => {
  const form = new FormData()
  form.set("model", "listens")
  form.set("sync", "true")
  form.set("file", new Blob([new Uint8Array(wav)]), "a.wav")
  const init = { method: "POST", headers: { authorization: `Bearer ${node.devKey}` }, body: form }
  return fetch(`${node.base}/v1/audio/transcriptions`, init)
}
const post = (node: NodeProcess, path: string, body: object) =>
  fetch(`${node.base}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${node.devKey}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  })
/** The reply to a chat with a picture. */
const show = async (node: NodeProcess) => {
  const url = dataUrl(png(8, 8, plain(255, 0, 0)))
  const content = [{ type: "image_url", image_url: { url } }]
  return answer(
    await post(node, "/v1/chat/completions", { model: seeing.id, messages: [{ role: "user", content }] }),
  )
}
const noPictures = [
  501,
  { detail: `${seeing.id} needs a picture decoder, which is not installed on this node` },
]
const answer = async (response: Response) => [response.status, await response.json()]

describe("without decoder and text front end", () => {
  let node: NodeProcess
  beforeAll(async () => {
    node = await start({ PATH: copy })
  })
  afterAll(() => node.dispose())

  it("the node says at its start what does not work, and what to install", () => {
    const lines = node.stdout().split("\n")
    expect(lines).toContain(
      "audio files and pictures cannot be decoded, so transcription of files, reference clips of voices and pictures in chats are refused: " +
        "the package node-av is not installed; npm ci installs it; or: no ffmpeg program was found; install it, e.g. apt-get install ffmpeg",
    )
    expect(lines).toContain(
      `${kokoro.id} cannot be loaded: it cannot speak en: the npm package phonemizer is not installed`,
    )
    expect(lines).toContain(
      "asian cannot be loaded: it cannot speak zh, ja: the npm packages pinyin-pro and lindera-wasm-nodejs-ipadic are not installed; run edgewise setup chinese and edgewise setup japanese",
    )
    expect(lines.find((line) => line.startsWith(`${clone.id} cannot be loaded`))).toMatch(
      /: it cannot speak en, .+: the npm packages phonemizer and @echogarden\/espeak-ng-emscripten are not installed$/,
    )
  })

  it("requests that need them get 501, and others are answered", async () => {
    expect(await answer(await transcribe(node))).toEqual([
      501,
      { detail: "Transcription of a file needs an audio decoder, which is not installed on this node" },
    ])
    expect(await show(node)).toEqual(noPictures)
    for (const model of [kokoro.id, clone.id])
      expect(
        await answer(await post(node, "/v1/audio/speech", { model, input: "Hello.", voice: "default" })),
      ).toEqual([
        501,
        {
          detail: `${model} needs the text front end for en (npm package phonemizer), which is not installed on this node`,
        },
      ])
    for (const [voice, language, name] of [
      ["zf_xiaoxiao", "zh", "pinyin-pro"],
      ["jf_alpha", "ja", "lindera-wasm-nodejs-ipadic"],
    ])
      expect(
        await answer(await post(node, "/v1/audio/speech", { model: "asian", input: "一", voice })),
      ).toEqual([
        501,
        {
          detail: `asian needs the text front end for ${language} (npm package ${name}), which is not installed on this node`,
        },
      ])
    const chat = { model: "fake", messages: [{ role: "user", content: "hello" }] }
    expect((await post(node, "/v1/chat/completions", chat)).status).toBe(200)
  })
})

describe("without node-av", needs("ffmpeg"), () => {
  it("the machine's ffmpeg decodes", async () => {
    const node = await start({})
    try {
      expect(node.stdout()).toMatch(
        /^audio files are decoded by \/\S+ffmpeg \S+; pictures in chats are refused: they need the package node-av$/m,
      )
      expect((await transcribe(node)).status).toBe(200)
      expect(await show(node)).toEqual(noPictures)
    } finally {
      await node.dispose()
    }
  })
})
