// Questions about a scene, in the wordings of models/train/sight/scenes.json, with the one answer that counts as right. Pure.
import { colours, type Dice, numerals, places, questions, type Scene, type Shape, shapes } from "./Scenes.ts"

/** What the evaluation counts separately. */
export const kinds = [
  "colour",
  "place",
  "yes or no",
  "count",
  "shape",
  "what is at a place",
  "number",
  "word",
  "description",
] as const
export type Kind = (typeof kinds)[number]

export interface Question {
  readonly kind: Kind
  readonly text: string
  readonly answer: string
}

const withArticle = (words: string): string => `${/^[aeiou]/.test(words) ? "an" : "a"} ${words}`

const sentence = (words: string): string => `${words.charAt(0).toUpperCase()}${words.slice(1)}.`

const yes = (isSo: boolean): string => (isSo ? "Yes." : "No.")

const named = ({ colour, shape }: Shape): string => withArticle(`${colour} ${shape}`)

const listed = (parts: ReadonlyArray<string>): string =>
  [parts.slice(0, -1).join(", "), parts.at(-1)].filter((part) => part !== "").join(" and ")

/** Those whose value occurs once. */
const lonely = <A>(list: ReadonlyArray<A>, valueOf: (one: A) => string): ReadonlyArray<A> =>
  list.filter((one) => list.filter((other) => valueOf(other) === valueOf(one)).length === 1)

/** All questions that make sense, in random order. */
export const questionsAbout = (scene: Scene, dice: Dice): ReadonlyArray<Question> => {
  const asked: Array<Question> = []
  const ask = (
    kind: Kind,
    wording: string,
    answer: string,
    words: Readonly<Record<string, string>> = {},
  ): void => {
    const text = dice
      .of(questions[wording]!)
      .replace(/\{(\w+)\}/g, (_, name: string) => (name === "a" ? "a" : words[name]!))
    asked.push({ kind, text, answer })
  }
  /** Half of the time something that is there, so that yes and no are about as frequent. */
  const perhaps = (present: ReadonlyArray<string>, every: ReadonlyArray<string>): string =>
    present.length > 0 && dice.once(2) ? dice.of(present) : dice.of(every)

  const { shapes: drawn, writing } = scene
  const there = { shapes: drawn.map(({ shape }) => shape), colours: drawn.map(({ colour }) => colour) }
  const inks = writing === undefined ? there.colours : [writing.colour]
  if (writing === undefined) {
    ask("description", "describe", sentence(listed(drawn.map(named))))
    const counted = perhaps(there.colours, colours)
    const ofColour = there.colours.filter((colour) => colour === counted).length
    ask("count", "countColour", `${numerals[ofColour]}.`, { colour: counted })
    const shapeOnce = lonely(drawn, ({ shape }) => shape)
    if (shapeOnce.length > 0) {
      const [one, two, three] = [dice.of(shapeOnce), dice.of(shapeOnce), dice.of(shapeOnce)]
      ask("colour", "colour", sentence(one.colour), { shape: one.shape })
      ask("place", "place", sentence(places[two.cell]!), { shape: two.shape })
      const colour = perhaps([three.colour], colours)
      ask("yes or no", "isShapeColour", yes(three.colour === colour), { shape: three.shape, colour })
    }
    const colourOnce = lonely(drawn, ({ colour }) => colour)
    if (colourOnce.length > 0) {
      const [one, two] = [dice.of(colourOnce), dice.of(colourOnce)]
      ask("shape", "shape", sentence(`the ${one.shape}`), { colour: one.colour })
      ask("place", "placeColour", sentence(places[two.cell]!), { colour: two.colour })
    }
    const cell = dice.below(places.length)
    const found = drawn.find((one) => one.cell === cell)
    const answer = sentence(found === undefined ? "nothing" : named(found))
    ask("what is at a place", "at", answer, { place: places[cell]! })
  } else {
    const { colour, kind, text } = writing
    ask("description", "describe", `The ${kind} ${text} in ${colour}.`)
    ask(kind, "read", `${text}.`)
    ask(kind, kind, `${text}.`)
    ask("colour", "inkColour", sentence(colour), { writing: kind })
  }
  ask("count", "count", `${numerals[drawn.length]}.`)
  const counted = perhaps(there.shapes, shapes)
  ask("count", "countShape", `${numerals[there.shapes.filter((shape) => shape === counted).length]}.`, {
    shape: counted,
  })
  const shape = perhaps(there.shapes, shapes)
  ask("yes or no", "isShape", yes(there.shapes.includes(shape)), { shape })
  const colour = perhaps(inks, colours)
  ask("yes or no", "isColour", yes(inks.includes(colour)), { colour })
  ask("yes or no", "isWriting", yes(writing !== undefined))
  return dice.shuffled(asked)
}
