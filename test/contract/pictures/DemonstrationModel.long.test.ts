// The built-in model that takes pictures, over HTTP: right answers about generated pictures, as its card and docs/start.md say.
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { createOpenAI } from "@ai-sdk/openai"
import { generateText } from "ai"
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { questionsAbout } from "../../../models/eval/sight/Questions.ts"
import { painted, sceneOf } from "../../../models/eval/sight/Scenes.ts"
import { needs } from "../../support/groups/Needs.ts"
import { builtInModel } from "../../support/nodes/BuiltInModels.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"
import { dataUrl, png } from "../../support/pictures/PictureFiles.ts"

const root = fileURLToPath(new URL("../../../", import.meta.url))
const guide = readFileSync(`${root}docs/start.md`, "utf8")
const shapes = readFileSync(`${root}models/vision-demo/shapes.png`)

const model = "llm-3.6-35b-a3b"
let node: TestNode
beforeAll(async () => {
  // In the region that deploys it. Without TLS, because the page's command is for a node without.
  node = await startNode({
    models: [builtInModel(model, { runtime: { load: "start" } })],
    tls: false,
    settings: { region: "sfo-02" },
  })
  await untilLoaded(node, model)
})
afterAll(() => node.stop())

const text = (value: string) => ({ type: "text" as const, text: value })
const image = (url: string) => ({ type: "image_url" as const, image_url: { url } })

const answerTo = async (messages: ReadonlyArray<object>): Promise<string> => {
  const response = await node.post("/v1/chat/completions", { model, temperature: 0, messages })
  const body = (await response.json()) as {
    readonly detail?: string
    readonly choices: ReadonlyArray<{ readonly message: { readonly content: string } }>
  }
  expect([response.status, body.detail]).toEqual([200, undefined])
  return body.choices[0]?.message.content ?? ""
}

const user = (...content: ReadonlyArray<object>) => ({ role: "user", content })
const description = "A yellow square, a red circle and a blue triangle."

describe("the picture of the five-minute start", () => {
  const ask = (question: string) => answerTo([user(text(question), image(dataUrl(shapes)))])

  it.each([
    ["What is in the picture?", description],
    ["What colour is the circle?", "Red."],
    ["Where is the triangle?", "Bottom right."],
    ["Where is the yellow shape?", "Top left."],
    ["How many shapes are there?", "Three."],
    ["How many circles are there?", "One."],
    ["Is there a triangle?", "Yes."],
    ["Is anything green?", "No."],
    ["Which shape is blue?", "The triangle."],
    ["Is there any text?", "No."],
  ])("%s %s", async (question, answer) => {
    expect(await ask(question)).toBe(answer)
  })

  it("is described to the page's command as pasted", needs("curl"), async () => {
    const command = /^curl [^\n]+<<END\n.*?shapes\.png.*?\nEND\n/ms.exec(guide)?.[0] ?? ""
    const env = { PATH: process.env.PATH, URL: node.base, KEY: node.keys.dev }
    const { stdout } = await promisify(execFile)("bash", ["-c", command], { cwd: root, env })
    expect(JSON.parse(stdout).choices[0].message.content).toBe(description)
    expect(guide).toContain(`# a picture: "${description}"`)
  })

  it("is seen by the openai package and the ai SDK", async () => {
    const options = { apiKey: node.keys.dev, baseURL: `${node.base}/v1` }
    const chat = await new OpenAI({ ...options, maxRetries: 0 }).chat.completions.create({
      model,
      temperature: 0,
      messages: [{ role: "user", content: [image(dataUrl(shapes)), text("What colour is the triangle?")] }],
    })
    expect(chat.choices[0]?.message.content).toBe("Blue.")
    const answered = await generateText({
      model: createOpenAI(options).chat(model),
      temperature: 0,
      messages: [
        {
          role: "user",
          content: [{ type: "image", image: shapes, mediaType: "image/png" }, text("Where is the circle?")],
        },
      ],
    })
    expect(answered.text).toBe("Top right.")
  })
})

describe("a conversation", () => {
  it("goes on about the picture, about other things, and about another picture", async () => {
    const turns: Array<object> = []
    const said: Array<string> = []
    for (const content of [
      [image(dataUrl(shapes)), text("What colour is the square?")],
      [text("How many shapes are there?")],
      [text("What is the capital of France?")],
      [image(fileOf(writtenScene("word"))), text("What does it say?")],
    ]) {
      turns.push(user(...content))
      said.push(await answerTo(turns))
      turns.push({ role: "assistant", content: said.at(-1) })
    }
    expect(said.slice(0, 2)).toEqual(["Yellow.", "Three."])
    expect(said[2]).toContain("Paris")
    expect(said[3]).toBe(`${sceneOf(seed, writtenScene("word")).scene.writing?.text}.`)
  })
})

/** Not the seed of the evaluation. */
const seed = 99

const fileOf = (number: number, scale = 1): string => {
  const { dice, scene } = sceneOf(seed, number)
  const { height, rgb, width } = painted(scene, dice, { scale, samples: 3, noise: 0 })
  const file = png(width, height, (x, y) => {
    const at = 3 * (y * width + x)
    return [rgb[at]!, rgb[at + 1]!, rgb[at + 2]!]
  })
  return dataUrl(file)
}

/** The first scene with a number, or with a word. */
const writtenScene = (kind: "number" | "word"): number => {
  for (let number = 0; ; number++) if (sceneOf(seed, number).scene.writing?.kind === kind) return number
}

// The evaluation of the card (models/eval) in small: 120 questions.
it("forty scenes of the kinds in its card: at least 19 of 20 questions of colour, place, count, yes and no", async () => {
  const wrong: Array<string> = []
  let asked = 0
  for (let number = 0; number < 40; number++) {
    const { dice, scene } = sceneOf(seed, number)
    // Every second one as a larger file, which the engine scales down.
    const url = fileOf(number, number % 2 === 0 ? 1 : 3)
    const questions = questionsAbout(scene, dice).filter(({ kind }) =>
      ["colour", "place", "count", "yes or no", "shape"].includes(kind),
    )
    for (const { answer, text: question } of questions.slice(0, 3)) {
      asked++
      const said = await answerTo([user(image(url), text(question))])
      if (said !== answer) wrong.push(`scene ${number}: ${question} ${said} instead of ${answer}`)
    }
  }
  expect(asked).toBe(120)
  expect(wrong.length, wrong.join("\n")).toBeLessThanOrEqual(6)
})

it("is the model with pictures in the list", async () => {
  const authorized = { headers: { authorization: `Bearer ${node.keys.dev}` } }
  const { data } = (await (await node.fetch("/v1/models", authorized)).json()) as {
    readonly data: ReadonlyArray<object>
  }
  expect(data).toMatchObject([{ id: model, input_modalities: ["text", "image"] }])
})
