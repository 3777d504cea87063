// Measures what the built-in model that takes pictures sees in pictures that were not in its training: questions with one right
// answer, asked over HTTP of a node as users start it.
import { dirname, resolve } from "node:path"
import { Effect } from "effect"
import { atLeast, type Figure, figure, type Goal, type Part } from "#harness/report/Figure.ts"
import { readCatalog } from "#weights/CatalogFile.ts"
import { ask } from "../../../bench/support/Ask.ts"
import type { Target } from "../../../bench/support/Connection.ts"
import { startGateway } from "../../../bench/support/Gateway.ts"
import { dataUrl, png } from "../../../test/support/pictures/PictureFiles.ts"
import { EvaluatedCatalog, evaluated } from "../Engines.ts"
import { type Kind, kinds, type Question, questionsAbout } from "./Questions.ts"
import { type Dice, painted, type Scene, sceneOf, words } from "./Scenes.ts"

interface PictureSet {
  readonly title: string
  readonly method: string
  /** Another for each set, so that no scene is in two of them. */
  readonly seed: number
  readonly pictures: number
  readonly painting: (dice: Dice) => Parameters<typeof painted>[2]
}

const asTrained: PictureSet = {
  title: "Pictures: right answers about unseen scenes",
  method:
    "1,000 generated PNG files of 96 pixels, one question of each kind that fits, over HTTP, greedy; an answer is right if every character is.",
  seed: 41,
  pictures: 1_000,
  painting: (dice) => ({
    scale: 1,
    samples: dice.once(2) ? 1 : 3,
    noise: dice.once(2) ? 0 : dice.between(0, 6),
  }),
}

const larger: PictureSet = {
  title: "Pictures: right answers about larger files",
  method: "The same kinds of scenes in 200 files of 130 to 480 pixels, which the engine scales down.",
  seed: 43,
  pictures: 200,
  painting: (dice) => ({ scale: dice.between(1.35, 5), samples: 1, noise: 0 }),
}

/** What the model was made for. */
const goals: Partial<Readonly<Record<Kind, number>>> = {
  colour: 95,
  place: 95,
  "yes or no": 95,
  count: 90,
  number: 85,
  word: 80,
}

/** Requests at the same time, as many as fit into the model's slots. */
const atOnce = 8

/** Longer than any right answer. */
const longestAnswer = 60

interface Reply {
  readonly choices: ReadonlyArray<{ readonly message: { readonly content: string } }>
}

const replyTo = async (target: Target, model: string, url: string, text: string): Promise<string> => {
  const content = [
    { type: "image_url", image_url: { url } },
    { type: "text", text },
  ]
  const messages = [{ role: "user", content }]
  const fields = { model, temperature: 0, max_tokens: longestAnswer, messages }
  const { choices } = await ask<Reply>(target, "/v1/chat/completions", fields)
  return choices[0]?.message.content ?? ""
}

/** The picture's file as a data: URL. */
const fileOf = (scene: Scene, dice: Dice, painting: Parameters<typeof painted>[2]): string => {
  const { height, rgb, width } = painted(scene, dice, painting)
  const file = png(width, height, (x, y) => {
    const at = 3 * (y * width + x)
    return [rgb[at]!, rgb[at + 1]!, rgb[at + 2]!]
  })
  return dataUrl(file)
}

const oneOfEachKind = (asked: ReadonlyArray<Question>): ReadonlyArray<Question> => [
  ...new Map(asked.map((question) => [question.kind, question])).values(),
]

interface Answered extends Question {
  readonly said: string
}

const answersTo = (target: Target, model: string, set: PictureSet) =>
  Effect.forEach(
    Array.from({ length: set.pictures }, (_, number) => number),
    (number) =>
      Effect.promise(async () => {
        const { dice, scene } = sceneOf(set.seed, number)
        const url = fileOf(scene, dice, set.painting(dice))
        const answered: Array<Answered> = []
        for (const question of oneOfEachKind(questionsAbout(scene, dice)))
          answered.push({ ...question, said: await replyTo(target, model, url, question.text) })
        return answered
      }),
    { concurrency: atOnce },
  ).pipe(Effect.map((answered) => answered.flat()))

const percent = (answered: ReadonlyArray<Answered>): number =>
  (100 * answered.filter(({ answer, said }) => said === answer).length) / answered.length

const ofKind = (answered: ReadonlyArray<Answered>, kind: Kind, goal: number | undefined): Figure => {
  const asked = answered.filter((one) => one.kind === kind)
  const wanted: Goal | undefined = goal === undefined ? undefined : atLeast(goal)
  const list = kind === "word" ? `, of a list of ${words.length}` : ""
  return figure(`${kind}${list} (${asked.length} questions)`, "%", [percent(asked)], wanted)
}

const sectionOf = Effect.fnUntraced(function* (target: Target, model: string, set: PictureSet) {
  const answered = yield* answersTo(target, model, set)
  const isMain = set === asTrained
  return {
    title: set.title,
    method: set.method,
    figures: [
      ...kinds.map((kind) => ofKind(answered, kind, isMain ? goals[kind] : undefined)),
      figure(`all (${answered.length} questions)`, "%", [percent(answered)]),
    ],
  } satisfies Part
})

/** The entry with absolute paths, for a catalog in another folder. */
const evaluatedEntry = Effect.gen(function* () {
  const { path } = yield* EvaluatedCatalog
  const { models } = yield* readCatalog(path)
  const entry = models.find(({ id }) => id === evaluated.pictures)
  if (entry === undefined)
    return yield* Effect.die(new Error(`${path}: the catalog has no ${evaluated.pictures}`))
  const files = Object.entries(entry.files).map(([role, file]) => [
    role,
    { ...file, source: resolve(dirname(path), file.source) },
  ])
  return { ...entry, files: Object.fromEntries(files), runtime: { load: "start" } }
})

export const pictureSections = Effect.gen(function* () {
  const entry = yield* evaluatedEntry
  const { target } = yield* Effect.orDie(startGateway({ models: [entry] }))
  return [
    yield* sectionOf(target, entry.id, asTrained),
    yield* sectionOf(target, entry.id, larger),
  ] satisfies ReadonlyArray<Part>
})
