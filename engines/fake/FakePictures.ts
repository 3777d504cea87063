// What the fake engine sees: the size of each picture, its colours, and where it stands in the message. So a test can tell
// from the answer that the right pixels have arrived in the right order. Pure.
import { partsOf } from "../protocol/Contents.ts"
import type { GenerateRequest, Picture } from "../protocol/Text.ts"

/** Pixels on a side of a square that costs one token. Of no model. */
const tokenSide = 32
/** Most tokens of a picture with `detail: "low"`. */
const lowTokens = 4

const tokensOf = ({ detail, height, width }: Picture): number => {
  const tokens = Math.ceil(width / tokenSide) * Math.ceil(height / tokenSide)
  return detail === "low" ? Math.min(tokens, lowTokens) : tokens
}

/** Tokens of all pictures. */
export const pictureTokens = ({ pictures = [] }: GenerateRequest): number =>
  pictures.reduce((sum, picture) => sum + tokensOf(picture), 0)

const hex = (value: number): string => Math.round(value).toString(16).padStart(2, "0")

/** The average colour of a rectangle, like `ff0000`. */
const colourOf = (
  { rgb, width }: Picture,
  from: readonly [x: number, y: number],
  to: readonly [x: number, y: number],
): string => {
  let [red, green, blue, count] = [0, 0, 0, 0]
  for (let y = from[1]; y < to[1]; y++) {
    for (let x = from[0]; x < to[0]; x++) {
      const at = 3 * (y * width + x)
      red += rgb[at] ?? 0
      green += rgb[at + 1] ?? 0
      blue += rgb[at + 2] ?? 0
      count++
    }
  }
  return [red, green, blue].map((sum) => hex(sum / Math.max(1, count))).join("")
}

/** `[40x30 auto ff0000 …]`: size, detail, the average colour, and those of the quarters, row by row. */
const described = (picture: Picture): string => {
  const { detail, height, width } = picture
  const [halfX, halfY] = [Math.ceil(width / 2), Math.ceil(height / 2)]
  const colours = [
    colourOf(picture, [0, 0], [width, height]),
    colourOf(picture, [0, 0], [halfX, halfY]),
    colourOf(picture, [halfX, 0], [width, halfY]),
    colourOf(picture, [0, halfY], [halfX, height]),
    colourOf(picture, [halfX, halfY], [width, height]),
  ]
  return `[${width}x${height} ${detail} ${colours.join(" ")}]`
}

/** All user messages with a description instead of each picture; undefined for a request without pictures. */
export const seenIn = ({ pictures, prompt }: GenerateRequest): string | undefined => {
  if (pictures === undefined || !("turns" in prompt)) return undefined
  return prompt.turns
    .filter(({ role }) => role === "user")
    .map(({ content }) =>
      partsOf(content)
        .map((part) => {
          if (part.kind === "text") return part.text
          const picture = pictures[part.picture]
          return picture === undefined ? "[missing]" : described(picture)
        })
        .join(""),
    )
    .join("\n")
}
