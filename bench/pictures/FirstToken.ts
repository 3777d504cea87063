// When the first token about a picture comes, against the tower alone and a text prompt of the same length; the second question
// about the same picture.
import { Effect } from "effect"
import { atMost, besideFloor, figure, figureOf, type Part, readingsOf } from "#harness/report/Figure.ts"
import type { Child } from "../support/Child.ts"
import { ChildFailed } from "../support/Child.ts"
import type { OnceReply } from "../support/loadClientMain.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import { chatPath } from "../text/Models.ts"
import { pictureQuestion, pictureUrl, promptTokensIn, textQuestion } from "./Models.ts"
import type { Stage } from "./Stage.ts"
import type { TowerCommands } from "./towerMain.ts"

const model = "smol-256m"

/** Pixels of a side: that of a tile. */
const side = 512

interface Cost {
  /** As the clock counts them: until the first token. */
  readonly ms: number
  /** Of processor time: of the engine. It hardly depends on other work on the machine. */
  readonly cpuMs: number
}

interface Round {
  readonly tower: Cost
  readonly prompt: Cost
  readonly first: Cost
  readonly second: Cost
}

/** One request, answered with 200. */
export const ask = ({ client, gateway }: Stage, body: object): Effect.Effect<OnceReply, ChildFailed> =>
  client.ask("once", { target: gateway.target, path: chatPath, body }).pipe(
    Effect.filterOrFail(
      ({ status }) => status === 200,
      (reply) => new ChildFailed({ child: "edgewise serve", detail: `${reply.status} ${reply.body}` }),
    ),
  )

/** Words of one token each. */
const words = (count: number): string => " what".repeat(count)

const costOf = (stage: Stage, body: object): Effect.Effect<Cost, ChildFailed> =>
  Effect.gen(function* () {
    const before = yield* stage.gateway.engineCpuUs
    const { firstEventMs: ms } = yield* ask(stage, body)
    return { ms, cpuMs: ((yield* stage.gateway.engineCpuUs) - before) / 1_000 }
  })

const takeRound = (stage: Stage, tower: Child<TowerCommands>, nth: number, promptWords: number) =>
  Effect.gen(function* () {
    const url = pictureUrl(nth + 1, side, side)
    // Other texts in each round, so that no prompt shares more than the template with an earlier one.
    return {
      tower: yield* tower.ask("encode"),
      prompt: yield* costOf(stage, textQuestion(model, `${nth}${words(promptWords)}`)),
      first: yield* costOf(stage, pictureQuestion(model, url, `what is it ${nth}`)),
      second: yield* costOf(stage, pictureQuestion(model, url, `how many ${nth}`)),
    } satisfies Round
  })

export const firstTokens = (
  stage: Stage,
  tower: Child<TowerCommands>,
  plan: RoundsPlan,
): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const seen = yield* ask(stage, pictureQuestion(model, pictureUrl(0, side, side), "what is it"))
    const trial = yield* ask(stage, textQuestion(model, words(8)))
    const promptTokens = promptTokensIn(seen.body)
    const promptWords = promptTokens - promptTokensIn(trial.body) + 8
    yield* tower.ask("encode")
    const rounds = yield* repeatRounds(plan, (nth) => takeRound(stage, tower, nth, promptWords))
    const of = (name: string, part: (round: Round) => number) => readingsOf(name, "ms", rounds.map(part))
    const prompt = of("text prompt of this length", (round) => round.prompt.ms)
    const first = of("new picture", (round) => round.first.ms)
    return {
      title: `First token about a picture of ${side}x${side} pixels, generated weights of SmolVLM 256M's shape, one thread`,
      method:
        "each round: the tower alone in a process of its own, a text prompt of as many tokens as the picture's, a new picture, " +
        "another question about it; over HTTP, one request at a time",
      figures: [
        figure("prompt with its picture", "tokens", [promptTokens]),
        figureOf(of("tower alone", (round) => round.tower.ms)),
        figureOf(prompt),
        ...besideFloor(
          of("tower and text prompt", (round) => round.tower.ms + round.prompt.ms),
          first,
          atMost(1.15),
        ),
        ...besideFloor(
          of("processor time of tower and text prompt", (round) => round.tower.cpuMs + round.prompt.cpuMs),
          of("processor time of a new picture", (round) => round.first.cpuMs),
          atMost(1.15),
        ),
        ...besideFloor(
          prompt,
          of("second question", (round) => round.second.ms),
          atMost(1.2),
        ).slice(1),
      ],
    }
  })
