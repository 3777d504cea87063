// How long running streams wait when a long prompt arrives beside them.
import { Effect } from "effect"
import { atMost, besideFloor, figureOf, ofEach, type Part } from "#harness/report/Figure.ts"
import type { ChildFailed } from "../support/Child.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import { completionsPath, endlessCompletion, promptAlone } from "./Models.ts"
import { askGateway, closeWindow, loopFigures, type Stage, type Watched, watchingLoop } from "./Stage.ts"

export interface IntrusionPlan extends RoundsPlan {
  readonly streams: number
  readonly promptTokens: number
  readonly quietMs: number
}

interface Round {
  readonly quietP99Ms: number
  readonly quietLongestMs: number
  readonly enteringP99Ms: number
  readonly enteringLongestMs: number
  readonly promptTokens: number
  readonly firstTokenMs: number
  readonly watched: Watched<unknown>
}

const sentence = " The fox walked along the river and looked for a friend."

/** Begins with its own number, so that it shares no cached prefix with earlier rounds. */
const promptOf = (serial: number, sentences: number): string => `${serial}.${sentence.repeat(sentences)}`

const usedTokens = (body: string): number => Number(/"prompt_tokens":(\d+)/.exec(body)?.[1])

/** Milliseconds after the prompt's first token, so that the stream gap which it interrupted has ended too. */
const tailMs = 30

const takeRound = (stage: Stage, plan: IntrusionPlan, prompt: string): Effect.Effect<Round, ChildFailed> =>
  Effect.gen(function* () {
    const { client, gateway } = stage
    // More tokens than the time allows: no stream ends or starts during the measurement.
    const bodies = Array.from({ length: plan.streams }, (_, seed) => [endlessCompletion(seed)])
    yield* client.ask("start", { target: gateway.target, path: completionsPath, bodies })
    yield* client.ask("begun")
    yield* Effect.sleep(100)
    yield* closeWindow(stage)
    yield* Effect.sleep(plan.quietMs)
    const quiet = yield* closeWindow(stage)
    const entrance = Effect.gen(function* () {
      const reply = yield* askGateway(stage, completionsPath, promptAlone(prompt))
      yield* Effect.sleep(tailMs)
      return { reply, window: yield* closeWindow(stage) }
    })
    const watched = yield* watchingLoop(stage, entrance)
    yield* client.ask("stop")
    // The engine processes the cancels before the next round begins.
    yield* Effect.sleep(100)
    const { reply, window } = watched.value
    return {
      quietP99Ms: quiet.gaps.p99,
      quietLongestMs: quiet.gaps.max,
      enteringP99Ms: window.gaps.p99,
      enteringLongestMs: window.gaps.max,
      promptTokens: usedTokens(reply.body),
      firstTokenMs: reply.firstEventMs,
      watched,
    }
  })

export const promptIntrusion = (stage: Stage, plan: IntrusionPlan): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const trial = 20
    const body = promptAlone(promptOf(0, trial))
    const reply = yield* askGateway(stage, completionsPath, body)
    const sentences = Math.round((plan.promptTokens / usedTokens(reply.body)) * trial)
    const rounds = yield* repeatRounds(plan, (nth) => takeRound(stage, plan, promptOf(nth + 1, sentences)))
    const of = (name: string, part: Exclude<keyof Round, "watched">) =>
      ofEach(rounds, name, part === "promptTokens" ? "tokens" : "ms", (round) => round[part])
    const quiet = of("quiet gap p99", "quietP99Ms")
    const longest = of("gap while it enters, longest", "enteringLongestMs")
    return {
      title: `A long prompt beside ${plan.streams} running streams, demonstration weights`,
      method:
        `gaps between arrivals on the running streams, ${plan.quietMs} ms without and then with the prompt, ` +
        "until its first token",
      figures: [
        figureOf(of("prompt", "promptTokens")),
        figureOf(of("quiet gap, longest", "quietLongestMs")),
        figureOf(of("gap while it enters p99", "enteringP99Ms")),
        ...besideFloor(quiet, longest, atMost(2)),
        figureOf(of("first token of the prompt", "firstTokenMs")),
        ...loopFigures(rounds.map(({ watched }) => watched)),
      ],
    }
  })
