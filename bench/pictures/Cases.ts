// The pictures and prompts of the recorded answers. All of it follows from numbers, so that the recorder and the test that
// compares see the same pixels.
import { createHash } from "node:crypto"
import type { Picture } from "../../engines/protocol/Text.ts"
import { RandomWords } from "../sizes/RandomWords.ts"

/** Width and height: tiny, narrow, wide, larger and smaller than the towers, next to their bounds. */
const sizes: ReadonlyArray<readonly [width: number, height: number]> = [
  [64, 64],
  [1, 1],
  [2, 7],
  [150, 1],
  [1, 150],
  [63, 65],
  [160, 160],
  [161, 80],
  [80, 161],
  [320, 64],
  [33, 200],
  [128, 96],
  [96, 128],
  [150, 100],
  [100, 150],
  [320, 240],
  [240, 320],
  [17, 31],
  [500, 20],
  [97, 203],
  [256, 256],
  [48, 80],
  [199, 31],
  [72, 72],
  [900, 700],
]

/** Stripes and spots of random colours. */
export const pictureOf = (seed: number): Picture => {
  const [width, height] = sizes[seed % sizes.length]!
  const random = new RandomWords(seed)
  const colours = Array.from({ length: 7 }, () => random.next())
  const wave = 1 + random.below(9)
  const rgb = new Uint8Array(width * height * 3)
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) {
      const colour = colours[(Math.floor(x / wave) * 3 + Math.floor(y / (wave + 2))) % colours.length]!
      for (let channel = 0; channel < 3; channel++)
        rgb[(y * width + x) * 3 + channel] = ((colour >>> (8 * channel)) + x + 2 * y) & 0xff
    }
  const hash = createHash("sha256").update(`${width}x${height}`).update(rgb).digest("hex")
  return { width, height, rgb, hash, detail: "auto" }
}

export interface PictureCase {
  readonly name: string
  /** Text and, as numbers, seeds of pictures. */
  readonly content: ReadonlyArray<string | number>
}

const questions = ["What is this?", "How many are there?", "Where is it", "say what you see"]

/** One question about each picture, then several pictures in one message. */
export const cases: ReadonlyArray<PictureCase> = [
  ...sizes.map((_, seed) => ({ name: `one-${seed}`, content: [seed, questions[seed % questions.length]!] })),
  { name: "two", content: ["first ", 3, " then ", 12, " which is larger?"] },
  { name: "three", content: [5, 6, 7, "and?"] },
  { name: "again", content: ["the same ", 9, " and ", 9, " again"] },
]

/** Tokens that are generated. */
export const replyTokens = 24

/** The prompt as the chat template of the generated models renders it, a place for each picture. */
export const promptText = ({ content }: PictureCase, place: string): string =>
  `<|im_start|>user\n${content.map((part) => (typeof part === "number" ? place : part)).join("")}<|im_end|>\n<|im_start|>assistant\n`
