// When the first token about a picture comes, against the tower alone and a text prompt of the same length; the second question
// about the same picture.
import { Effect } from "effect"
import type { Child } from "../support/Child.ts"
import { ChildFailed } from "../support/Child.ts"
import { finding, type Section } from "../support/Findings.ts"
import type { OnceReply } from "../support/loadClientMain.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import { chatPath } from "../text/Models.ts"
import { pictureQuestion, pictureUrl, promptTokensIn, textQuestion } from "./Models.ts"
import type { Stage } from "./Stage.ts"
import type { TowerCommands } from "./towerMain.ts"

const model = "smol-256m"

/** Pixels of a side: that of a tile. */
const side = 512

interface Round {
  readonly towerMs: number
  readonly promptMs: number
  readonly firstMs: number
  readonly secondMs: number
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

const takeRound = (stage: Stage, tower: Child<TowerCommands>, nth: number, promptWords: number) =>
  Effect.gen(function* () {
    const url = pictureUrl(nth + 1, side, side)
    // Other texts in each round, so that no prompt shares more than the template with an earlier one.
    const towerMs = yield* tower.ask("encode")
    const prompt = yield* ask(stage, textQuestion(model, `${nth}${words(promptWords)}`))
    const first = yield* ask(stage, pictureQuestion(model, url, `what is it ${nth}`))
    const second = yield* ask(stage, pictureQuestion(model, url, `how many ${nth}`))
    const { firstEventMs: promptMs } = prompt
    return { towerMs, promptMs, firstMs: first.firstEventMs, secondMs: second.firstEventMs } satisfies Round
  })

export const firstTokens = (
  stage: Stage,
  tower: Child<TowerCommands>,
  plan: RoundsPlan,
): Effect.Effect<Section, ChildFailed> =>
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
      findings: [
        finding("prompt with its picture", "tokens", [promptTokens]),
        finding(
          "tower alone",
          "ms",
          of(({ towerMs }) => towerMs),
        ),
        finding(
          "text prompt of this length",
          "ms",
          of(({ promptMs }) => promptMs),
        ),
        finding(
          "new picture",
          "ms",
          of(({ firstMs }) => firstMs),
        ),
        finding(
          "  over tower and text prompt",
          "x",
          of(({ firstMs, promptMs, towerMs }) => firstMs / (towerMs + promptMs)),
          { is: "at most", value: 1.15 },
        ),
        finding(
          "second question",
          "ms",
          of(({ secondMs }) => secondMs),
        ),
        finding(
          "  over a text prompt of this length",
          "x",
          of(({ promptMs, secondMs }) => secondMs / promptMs),
          { is: "at most", value: 1.2 },
        ),
      ],
    }
  })
