// The scenes and questions of the evaluation of pictures: what is drawn is what is asked about.
import { describe, expect, it } from "@effect/vitest"
import { kinds, questionsAbout } from "../eval/sight/Questions.ts"
import { colours, painted, sceneOf, side } from "../eval/sight/Scenes.ts"

const plain = { scale: 1, samples: 1, noise: 0 }
const numbers = Array.from({ length: 400 }, (_, number) => number)

const strongest = ([red = 0, green = 0, blue = 0]: ReadonlyArray<number>): string =>
  red > green + 60 && red > blue + 60 ? "red" : green > red + 60 && green > blue + 60 ? "green" : "other"

describe("scenes", () => {
  it("are the same for the same number, and others for another number or seed", () => {
    const bytesOf = (seed: number, number: number) => {
      const { dice, scene } = sceneOf(seed, number)
      return Buffer.from(painted(scene, dice, { ...plain, noise: 3 }).rgb).toString("base64")
    }
    expect(bytesOf(1, 5)).toBe(bytesOf(1, 5))
    expect(new Set([bytesOf(1, 5), bytesOf(1, 6), bytesOf(2, 5)]).size).toBe(3)
  })

  it("have each shape in its cell, in its colour", () => {
    let seen = 0
    for (const number of numbers) {
      const { dice, scene } = sceneOf(7, number)
      for (const { cell, colour } of scene.shapes) {
        if (colour !== "red" && colour !== "green") continue
        const { height, rgb, width } = painted(scene, dice, plain)
        // The middle of a cell is inside a shape wherever it stands in the cell, unless it is a small triangle.
        const x = Math.floor(((cell % 2) + 0.5) * (width / 2))
        const y = Math.floor((Math.floor(cell / 2) + 0.5) * (height / 2))
        const at = 3 * (y * width + x)
        expect([colour, "other"]).toContain(strongest([...rgb.subarray(at, at + 3)]))
        if (strongest([...rgb.subarray(at, at + 3)]) === colour) seen++
      }
    }
    expect(seen).toBeGreaterThan(100)
  })

  it("are squares and letters of whole pictures at every scale", () => {
    for (const number of numbers.slice(0, 40)) {
      const { dice, scene } = sceneOf(3, number)
      const { height, rgb, width } = painted(scene, dice, { scale: 2.5, samples: 1, noise: 0 })
      expect([width, height]).toEqual([Math.round(scene.width * 2.5), Math.round(scene.height * 2.5)])
      expect(Math.max(scene.width, scene.height)).toBe(side)
      const values = new Set<number>()
      for (let at = 0; at < 3 * width * height; at += 3)
        values.add((rgb[at]! << 16) | (rgb[at + 1]! << 8) | rgb[at + 2]!)
      // Paper and one colour for each shape, or for the writing.
      expect(values.size).toBe(1 + Math.max(1, scene.shapes.length))
    }
  })
})

describe("questions", () => {
  const all = numbers.flatMap((number) => {
    const { dice, scene } = sceneOf(11, number)
    return questionsAbout(scene, dice).map((question) => ({ ...question, scene }))
  })

  it("are of every kind, without gaps, each with one short answer", () => {
    expect(new Set(all.map(({ kind }) => kind))).toEqual(new Set(kinds))
    for (const { answer, text } of all) {
      expect(text).toMatch(/^[A-Z][a-z ]+[?.]$/)
      expect(answer).toMatch(/^[A-Z0-9][A-Za-z0-9, ]*\.$/)
    }
  })

  it("have answers that agree with the scene", () => {
    for (const { answer, kind, scene, text } of all) {
      if (kind === "number" || kind === "word") expect(answer).toBe(`${scene.writing?.text}.`)
      const counted = /^How many shapes (?:are there|do you see|are in the picture)\?$/.test(text)
      if (counted) expect(answer).toBe(`${["None", "One", "Two", "Three", "Four"][scene.shapes.length]}.`)
      const asked = colours.find((colour) => text.includes(`anything ${colour}`))
      if (asked === undefined) continue
      const inks = [...scene.shapes.map(({ colour }) => colour), scene.writing?.colour]
      expect(answer).toBe(inks.includes(asked) ? "Yes." : "No.")
    }
  })

  it("are answered yes about as often as no", () => {
    const decided = all.filter(({ kind }) => kind === "yes or no")
    const share = decided.filter(({ answer }) => answer === "Yes.").length / decided.length
    expect(share).toBeGreaterThan(0.4)
    expect(share).toBeLessThan(0.6)
  })
})
