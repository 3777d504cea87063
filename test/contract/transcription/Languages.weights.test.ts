// The built-in transcription model of several languages over HTTP: speech of each of its languages, requests that name another or none, and
// what it refuses. How many words it gets wrong is measured by `npm run -s models:eval -- --section languages`.
import { readFileSync } from "node:fs"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { evaluationSet } from "../../../models/eval/EvaluationSet.ts"
import { wavOf } from "../../support/audio/WavFile.ts"
import { wordErrorRate } from "../../support/audio/WordErrorRate.ts"
import { parseEventStream } from "../../support/clients/EventStream.ts"
import { post, submit, targetOf, untilDone } from "../../support/clients/TranscriptionClient.ts"
import { runs } from "../../support/groups/Runs.ts"
import { builtInModel } from "../../support/nodes/BuiltInModels.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

const model = "stt-multi-03-2026"
let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [builtInModel(model, { runtime: { load: "start" } })] })
})
afterAll(() => node.stop())

const english = evaluationSet.speech.filter(({ group }) => group === "trained")
const recordings = Object.entries({ en: english, ...evaluationSet.languages }).flatMap(
  ([language, [first]]) => {
    const { file, segments } = first!
    return [{ language, file, text: segments.map(({ text }) => text).join(" ") }]
  },
)
const audioOf = (file: string) =>
  new Uint8Array(readFileSync(new URL(`../../../models/eval/${file}`, import.meta.url)))

interface Heard {
  readonly language: string
  readonly text: string
}

const hear = async (audio: Uint8Array<ArrayBuffer>, query: Record<string, string>): Promise<Heard> => {
  const response = await post(node, audio, {
    query: { model, sync: "true", response_format: "verbose_json", ...query },
  })
  expect(response.status).toBe(200)
  return (await response.json()) as Heard
}

describe("each of its languages", () => {
  let heard: ReadonlyArray<Heard> = []
  beforeAll(async () => {
    heard = await Promise.all(recordings.map(({ file, language }) => hear(audioOf(file), { language })))
  })

  it("is transcribed, most words right, and reported", () => {
    expect(heard.map(({ language }) => language)).toEqual(recordings.map(({ language }) => language))
    const pairs = recordings.map(({ text }, at) => ({ reference: text, heard: heard[at]!.text }))
    // All languages together, with a margin: 23 % of the words of these recordings are wrong. The card has each language alone.
    expect(wordErrorRate(pairs)).toBeLessThan(0.3)
  })

  it("is written with its letters", () => {
    const textOf = (language: string) => heard.find((one) => one.language === language)?.text
    expect(textOf("de")).toMatch(/[äöüß]/)
    expect(textOf("pl")).toMatch(/[ąćęłńóśźż]/)
    expect(textOf("pt")).toMatch(/[ãõçáéíóêâ]/)
  })
})

it("speech in another language than the request says gives some text, and not without end", async () => {
  const next = (at: number) => recordings[(at + 1) % recordings.length]!.language
  await Promise.all(
    recordings.slice(0, runs(3, recordings.length)).map(async ({ file, text }, at) => {
      const heard = await hear(audioOf(file), { language: next(at) })
      expect(heard.text).not.toBe("")
      expect(heard.text.length).toBeLessThan(3 * text.length)
    }),
  )
})

it("silence is no text in any of its languages", async () => {
  const silence = new Uint8Array(wavOf(Buffer.alloc(2 * 16_000 * 5), 16_000))
  const texts = await Promise.all(
    recordings.map(async ({ language }) => (await hear(silence, { language })).text),
  )
  expect(texts).toEqual(recordings.map(() => ""))
})

it.each(["sync", "stream", "job"].slice(0, runs(1, 3)))(
  "takes and reports en without a language (%s)",
  async (mode) => {
    const audio = audioOf(recordings[0]!.file)
    const said = (await hear(audio, { language: "en" })).text
    const query = { model, response_format: "verbose_json" }
    if (mode === "job") {
      const id = await submit(targetOf(node), audio, query)
      expect((await untilDone(targetOf(node), id)).body).toMatchObject({ language: "en", text: said })
    } else if (mode === "sync") {
      expect(await hear(audio, {})).toMatchObject({ language: "en", text: said })
    } else {
      const response = await post(node, audio, { query: { ...query, stream: "true" } })
      const events = parseEventStream(await response.text())
      expect(JSON.parse(events.at(-2)!)).toMatchObject({ language: "en", text: said })
    }
  },
)

it.each([
  ["ja", true],
  ["vi", true],
  ["sv", false],
])(
  "the refusal of %s names the eight that it knows, and the command that brings weights: %s",
  async (language, isNamed) => {
    const response = await post(node, audioOf(recordings[0]!.file), {
      query: { model, sync: "true", language },
    })
    const { detail } = (await response.json()) as { detail: string }
    const [, known = ""] = /^language: .* does not know [a-z]+; it knows ([a-z, ]+)/.exec(detail) ?? []
    expect([response.status, known.split(", ").sort()]).toEqual([
      400,
      recordings.map((recording) => recording.language).sort(),
    ])
    expect(
      detail.endsWith(`; weights that know it: edgewise models add cohere-transcribe --as ${model}`),
    ).toBe(isNamed)
  },
)

it("translates nothing: no such task was in its training", async () => {
  const form = new FormData()
  form.append("model", model)
  form.append("file", new File([audioOf(recordings[1]!.file)], "speech.opus"))
  const response = await fetch(`${node.base}/v1/audio/translations`, {
    method: "POST",
    headers: { authorization: `Bearer ${node.keys.dev}` },
    body: form,
  })
  expect(response.status).toBe(400)
  expect(await response.text()).toContain("does not translate")
})
