// Scenes for the evaluation of the built-in model that takes pictures: the kinds of scenes that it was trained on, drawn by other
// code and from other random numbers. Words, colours and letters are those of models/train/sight/scenes.json. Pure.
import { readFileSync } from "node:fs"
import { Random } from "#harness/random/Random.ts"

type Colour = readonly [red: number, green: number, blue: number]

const known = JSON.parse(readFileSync(new URL("../../train/sight/scenes.json", import.meta.url), "utf8")) as {
  readonly colours: Readonly<Record<string, Colour>>
  readonly shapes: ReadonlyArray<string>
  readonly places: ReadonlyArray<string>
  readonly words: ReadonlyArray<string>
  readonly numerals: ReadonlyArray<string>
  /** Seven rows of five dots, `#` where there is ink. */
  readonly glyphs: Readonly<Record<string, ReadonlyArray<string>>>
  readonly questions: Readonly<Record<string, ReadonlyArray<string>>>
}

/** Side of the pictures that the model was trained on, the unit of all lengths here. */
export const side = 96

export const { numerals, places, questions, shapes, words } = known
export const colours = Object.keys(known.colours)

export interface Shape {
  /** 0 to 3: top left, top right, bottom left, bottom right. */
  readonly cell: number
  readonly shape: string
  readonly colour: string
}

interface Writing {
  readonly text: string
  readonly colour: string
  readonly kind: "number" | "word"
}

/** A colour of one point, or nothing where there is paper. */
type Ink = (x: number, y: number) => Colour | undefined

export interface Scene {
  readonly width: number
  readonly height: number
  /** In the order of their cells; none where something is written. */
  readonly shapes: ReadonlyArray<Shape>
  readonly writing: Writing | undefined
  /** The colour of a point. */
  readonly colourAt: (x: number, y: number) => Colour
}

/** Random numbers of one scene. */
export class Dice extends Random {
  between(low: number, high: number): number {
    return low + ((high - low) * this.next()) / 2 ** 32
  }

  of<A>(list: ReadonlyArray<A>): A {
    return list[this.below(list.length)]!
  }

  shuffled<A>(list: ReadonlyArray<A>): ReadonlyArray<A> {
    return list
      .map((value) => [this.next(), value] as const)
      .sort(([a], [b]) => a - b)
      .map(([, value]) => value)
  }

  /** The colour with that name, a little changed. */
  shade(name: string): Colour {
    const near = (value: number) => Math.max(0, Math.min(255, value + Math.round(this.between(-14, 14))))
    const [red, green, blue] = known.colours[name]!
    return [near(red), near(green), near(blue)]
  }
}

const isInside: Readonly<Record<string, (dx: number, dy: number, radius: number) => boolean>> = {
  circle: (dx, dy, radius) => dx * dx + dy * dy <= radius * radius,
  square: (dx, dy, radius) => Math.max(Math.abs(dx), Math.abs(dy)) <= 0.88 * radius,
  triangle: (dx, dy, radius) => Math.abs(dy) <= radius && Math.abs(dx) <= (dy + radius) / 2,
}

const drawnShapes = (dice: Dice, width: number, height: number) => {
  const count = dice.of([1, 1, 2, 2, 3, 3, 4])
  const cells = dice.shuffled([0, 1, 2, 3]).slice(0, count).sort()
  const half = Math.min(width, height) / 4
  const drawn = cells.map((cell) => {
    const [shape, colour] = [dice.of(shapes), dice.of(colours)]
    const radius = half * dice.between(0.42, 0.8)
    const loose = Math.min(4, half - radius)
    const x = ((cell % 2) + 0.5) * (width / 2) + dice.between(-loose, loose)
    const y = (Math.floor(cell / 2) + 0.5) * (height / 2) + dice.between(-loose, loose)
    const shade = dice.shade(colour)
    const ink: Ink = (px, py) => (isInside[shape]!(px - x, py - y, radius) ? shade : undefined)
    return { seen: { cell, shape, colour }, ink }
  })
  const ink: Ink = (x, y) => {
    for (const one of drawn) {
      const shade = one.ink(x, y)
      if (shade !== undefined) return shade
    }
    return undefined
  }
  return { shapes: drawn.map(({ seen }) => seen), writing: undefined, ink }
}

/** Dots of a letter with the gap after it, and its rows. */
const letterDots = 6
const letterRows = 7

const drawnText = (dice: Dice, width: number, height: number) => {
  const kind = dice.once(2) ? ("number" as const) : ("word" as const)
  const text = kind === "number" ? String(dice.below(100)) : dice.of(words)
  const colour = dice.of(colours)
  const dots = letterDots * text.length - 1
  const largest = Math.min(5, (width - 3) / dots, (height - 3) / letterRows)
  const scale = dice.between(Math.min(2.6, largest), largest)
  const left = dice.between(1, width - 1 - dots * scale)
  const top = dice.between(1, height - 1 - letterRows * scale)
  const shade = dice.shade(colour)
  const ink: Ink = (x, y) => {
    const column = Math.floor((x - left) / scale)
    const glyph = known.glyphs[text[Math.floor(column / letterDots)] ?? ""]
    return glyph?.[Math.floor((y - top) / scale)]?.[column % letterDots] === "#" ? shade : undefined
  }
  return { shapes: [], writing: { text, colour, kind }, ink }
}

/** One picture in eight is not square. */
const sizeOf = (dice: Dice): readonly [width: number, height: number] => {
  if (!dice.once(8)) return [side, side]
  const shorter = 60 + dice.below(35)
  return dice.once(2) ? [side, shorter] : [shorter, side]
}

/** The scene of this number, and the dice that go on with it. */
export const sceneOf = (seed: number, number: number): { readonly scene: Scene; readonly dice: Dice } => {
  const dice = new Dice(seed, number)
  const [width, height] = sizeOf(dice)
  const light = dice.once(3) ? Math.round(dice.between(215, 255)) : 255
  const paper = Array.from({ length: 3 }, () => light - dice.below(19)) as unknown as Colour
  const draw = dice.below(100) < 55 ? drawnShapes : drawnText
  const { ink, ...seen } = draw(dice, width, height)
  return { scene: { width, height, ...seen, colourAt: (x, y) => ink(x, y) ?? paper }, dice }
}

/**
 * The scene as pixels, `scale` of them for each unit. `samples`: points of a side of a pixel whose colours are averaged.
 * `noise`: deviation of a value from what was drawn.
 */
export const painted = (
  { colourAt, height, width }: Scene,
  dice: Dice,
  { noise, samples, scale }: { readonly scale: number; readonly samples: number; readonly noise: number },
) => {
  const size = { width: Math.round(width * scale), height: Math.round(height * scale) }
  const rgb = new Uint8Array(size.width * size.height * 3)
  const step = 1 / (samples * scale)
  let at = 0
  for (let y = 0; y < size.height; y++)
    for (let x = 0; x < size.width; x++) {
      const sums = [0, 0, 0]
      for (let part = 0; part < samples * samples; part++) {
        const right = x * samples + (part % samples) + 0.5
        const down = y * samples + Math.floor(part / samples) + 0.5
        for (const [channel, value] of colourAt(right * step, down * step).entries()) sums[channel]! += value
      }
      for (const sum of sums) {
        // Four uniform numbers in place of a normal one: their sum has a deviation of 2 / sqrt(12) times their width.
        let spread = 0
        if (noise > 0) for (let i = 0; i < 4; i++) spread += dice.between(-0.866, 0.866)
        rgb[at++] = Math.max(0, Math.min(255, Math.round(sum / samples ** 2 + noise * spread)))
      }
    }
  return { ...size, rgb }
}
