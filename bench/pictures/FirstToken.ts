// When the first token about a picture comes, against the tower alone and a text prompt of the same length; the second question
// about the same picture.
import { Effect } from "effect"
import { figure, type Part } from "#harness/report/Figure.ts"
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
    const of = (part: (round: Round) => number) => rounds.map(part)
    return {
      title: `First token about a picture of ${side}x${side} pixels, generated weights of SmolVLM 256M's shape, one thread`,
      method:
        "each round: the tower alone in a process of its own, a text prompt of as many tokens as the picture's, a new picture, " +
        "another question about it; over HTTP, one request at a time",
      figures: [
        figure("prompt with its picture", "tokens", [promptTokens]),
        figure(
          "tower alone",
          "ms",
          of(({ tower }) => tower.ms),
        ),
        figure(
          "text prompt of this length",
          "ms",
          of(({ prompt }) => prompt.ms),
        ),
        figure(
          "new picture",
          "ms",
          of(({ first }) => first.ms),
        ),
        figure(
          "  over tower and text prompt",
          "x",
          of(({ first, prompt, tower }) => first.ms / (tower.ms + prompt.ms)),
          { is: "at most", value: 1.15 },
        ),
        figure(
          "  the same of processor time",
          "x",
          of(({ first, prompt, tower }) => first.cpuMs / (tower.cpuMs + prompt.cpuMs)),
          { is: "at most", value: 1.15 },
        ),
        figure(
          "second question",
          "ms",
          of(({ second }) => second.ms),
        ),
        figure(
          "  over a text prompt of this length",
          "x",
          of(({ prompt, second }) => second.ms / prompt.ms),
          { is: "at most", value: 1.2 },
        ),
      ],
    }
  })
