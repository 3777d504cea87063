// The models of the pictures suite, with generated weights, and the requests sent to them.
import type { VisionSize } from "../sizes/vision/TowerShapes.ts"
import { visionWeights } from "../sizes/vision/VisionWeights.ts"
import { entry } from "../text/Models.ts"

/** Streams beside a picture, and the slots of the measured model: one more. */
export const runningStreams = 4

const options: Readonly<Record<string, object>> = {
  "smol-256m": { contextTokens: 2_048, slots: runningStreams + 1 },
  // So few megabytes that the rows of a thousand pictures do not fit.
  "toy-idefics3": { contextTokens: 1_024, slots: 4, pictureMegabytes: 1 },
}

/** One thread, so that other work on the machine disturbs the subject and its floor alike. */
export const pictureModel = async (size: VisionSize) => {
  const { mmproj, weights } = await visionWeights(size)
  return entry(size, "llama-gguf", {
    files: { weights: { source: weights }, mmproj: { source: mmproj } },
    options: options[size] ?? {},
    runtime: { load: "start", threads: 1 },
  })
}

/** A picture as a file: BMP, which costs nothing to make. Its pixels follow from the seed. */
export const pictureUrl = (seed: number, width: number, height: number): string => {
  const line = Math.ceil((3 * width) / 4) * 4
  const file = Buffer.alloc(54 + line * height)
  file.write("BM", 0, "latin1")
  file.writeUInt32LE(file.length, 2)
  file.writeUInt32LE(54, 10)
  file.writeUInt32LE(40, 14)
  file.writeInt32LE(width, 18)
  file.writeInt32LE(-height, 22)
  file.writeUInt16LE(1, 26)
  file.writeUInt16LE(24, 28)
  for (let y = 0; y < height; y++)
    for (let at = 0; at < 3 * width; at++)
      file[54 + y * line + at] = (seed * 31 + ((at * (seed % 7)) ^ (y * 5)) + (at % 3) * seed) & 0xff
  return `data:image/bmp;base64,${file.toString("base64")}`
}

const chat = (model: VisionSize, content: unknown, tokens: number) => ({
  model,
  stream: true,
  stream_options: { include_usage: true },
  messages: [{ role: "user", content }],
  temperature: 0,
  max_tokens: tokens,
  min_tokens: tokens,
})

/** A question about a picture of one tile (`detail: "low"`), answered with one token. */
export const pictureQuestion = (model: VisionSize, url: string, question: string) =>
  chat(
    model,
    [
      { type: "image_url", image_url: { url, detail: "low" } },
      { type: "text", text: question },
    ],
    1,
  )

export const textQuestion = (model: VisionSize, text: string) => chat(model, text, 1)

/** A reply that is longer than any window of the suite. */
export const longReply = (model: VisionSize, seed: number) => ({
  ...chat(model, `Tell me more ${seed}`, 1_900),
  temperature: 0.7,
  seed,
})

export const promptTokensIn = (body: string): number => Number(/"prompt_tokens":(\d+)/.exec(body)?.[1])
