// The table of attacks: each against a node that serves another client, alternately with quiet. Measures the effect on that
// client and the growth of the node's memory.
import { Effect, type Scope } from "effect"
import {
  atLeast,
  atMost,
  besideFloor,
  type Figure,
  figure,
  figureOf,
  ofEach,
  type Part,
} from "#harness/report/Figure.ts"
import { type ChildFailed, startChild } from "../support/Child.ts"
import type { Target } from "../support/Connection.ts"
import { temporaryFolder } from "../support/Gateway.ts"
import { createKey } from "../support/Keys.ts"
import { demonstration, entryOf } from "../transcription/Models.ts"
import {
  type AttackName,
  attackNames,
  conversationAttacks,
  mediaAttacks,
  schemaAttacks,
} from "./AttackPlans.ts"
import type { AttackerCommands } from "./attackerMain.ts"
import type { HonestSeen } from "./honestMain.ts"
import { models, recursiveModel } from "./Models.ts"
import { decoderPids, forgetPeak, isHealthy, ownBytes, resident, type Stage, startStage } from "./Stage.ts"

export interface AttacksPlan {
  /** Only attacks whose name begins with this, or with one of these, separated by commas. */
  readonly named?: string | undefined
  readonly rounds: number
  /** Of quiet, and again of attack, a round. */
  readonly seconds: number
}

interface Round {
  readonly quiet: HonestSeen
  readonly during: HonestSeen
  /** Longest processor time of the gateway's thread in one turn of its event loop, milliseconds. */
  readonly holdMs: { readonly quiet: number; readonly during: number }
  /** What the garbage collector took of the longest turn under attack. */
  readonly collectedMs: number
  readonly connections: number
  readonly grownMib: number
}

const mib = 1024 * 1024
const pollMs = 200
/** After an attack, before the next quiet: what the attacker left behind is worked off. It counts as attacked. */
const settleMs = 1_000
const most = { transportMib: 64, mediaMib: 256, conversationMib: 256, times: 3, holdMs: 10 }

const decodersBytes = (stage: Stage) =>
  Effect.promise(async () => {
    const all = await Promise.all(decoderPids(stage.gateway).map(ownBytes))
    return all.reduce((sum, bytes) => sum + bytes, 0)
  })

export const attackers = startChild<AttackerCommands>({
  name: "attacker",
  entry: new URL("./attackerMain.ts", import.meta.url),
})

export const take = (stage: Stage): Effect.Effect<HonestSeen, ChildFailed> =>
  Effect.map(stage.honest.ask("take"), (seen) => seen as HonestSeen)

const round = (stage: Stage, attacker: Target, name: AttackName, seconds: number) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { gateway } = stage
      const child = yield* attackers
      yield* take(stage)
      yield* gateway.child.ask("watchLoop")
      yield* Effect.sleep(seconds * 1000)
      const quiet = yield* take(stage)
      const quietDelay = yield* gateway.child.ask("loopDelay")
      yield* gateway.child.ask("watchLoop")
      yield* Effect.promise(() => forgetPeak(gateway.child.pid))
      const { now } = yield* Effect.promise(() => resident(gateway.child.pid))
      const decodersBefore = yield* decodersBytes(stage)
      let decoders = decodersBefore
      yield* child.ask("start", { name, target: attacker })
      for (const untilMs = performance.now() + seconds * 1000; performance.now() < untilMs; ) {
        yield* Effect.sleep(pollMs)
        decoders = Math.max(decoders, yield* decodersBytes(stage))
      }
      const connections = (yield* child.ask("stop")) ?? 0
      yield* Effect.sleep(settleMs)
      const during = yield* take(stage)
      const duringDelay = yield* gateway.child.ask("loopDelay")
      const { peak } = yield* Effect.promise(() => resident(gateway.child.pid))
      const grownMib = (peak - now + decoders - decodersBefore) / mib
      const holdMs = {
        quiet: quietDelay?.longestWork ?? Number.NaN,
        during: duringDelay?.longestWork ?? Number.NaN,
      }
      const collectedMs = duringDelay?.longestCollected ?? Number.NaN
      return { quiet, during, holdMs, collectedMs, connections, grownMib } satisfies Round
    }),
  )

const rows = (name: AttackName, rounds: ReadonlyArray<Round>): ReadonlyArray<Figure> => {
  const failed = rounds.reduce((sum, { during, quiet }) => sum + during.failed + quiet.failed, 0)
  const answered = rounds.reduce((sum, { during, quiet }) => sum + during.answered + quiet.answered, 0)
  const latencies = (of: "chat" | "text" | "schema", what: string): ReadonlyArray<Figure> => {
    const p99 = (when: "quiet" | "during", words: string) =>
      ofEach(rounds, `${name}: p99${what} ${words}`, "ms", (one) => one[when][of].p99)
    return besideFloor(p99("quiet", "quiet"), p99("during", "under attack"), atMost(most.times))
  }
  const grown = Math.max(...rounds.map(({ grownMib }) => grownMib))
  const isConversation = conversationAttacks.includes(name)
  const others = mediaAttacks.includes(name) ? most.mediaMib : most.transportMib
  const limit = isConversation ? most.conversationMib : others
  return [
    figureOf(ofEach(rounds, `${name}: connections of the attacker`, "", ({ connections }) => connections)),
    ...(schemaAttacks.includes(name)
      ? [
          ...latencies("text", " of a plain chat of the model"),
          ...latencies("schema", " of a new schema of the model"),
        ]
      : latencies("chat", "")),
    figure(
      `${name}: longest turn of the gateway's event loop (CPU) quiet`,
      "ms",
      rounds.map(({ holdMs }) => holdMs.quiet),
    ),
    figure(
      `${name}: the same under attack`,
      "ms",
      rounds.map(({ holdMs }) => holdMs.during),
      atMost(most.holdMs),
    ),
    figure(
      `${name}: what the garbage collector took of that turn`,
      "ms",
      rounds.map(({ collectedMs }) => collectedMs),
    ),
    figure(`${name}: requests that failed, of ${answered + failed}`, "", [failed], atMost(0)),
    figure(`${name}: resident memory of the node, grown by`, "MiB", [grown], atMost(limit)),
  ]
}

export const whisper = [{ ...entryOf(demonstration), id: "whisper", price: {} }]

export const attacks = (
  plan: AttacksPlan,
  profileDir?: string,
): Effect.Effect<ReadonlyArray<Part>, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const folder = yield* temporaryFolder
    const stage = yield* startStage({
      models: [...models, recursiveModel(folder), ...whisper],
      others: false,
      converses: true,
      profileDir,
      limits: "as delivered",
      preload: [new URL("./loopbackClips.ts", import.meta.url)],
    })
    const figures: Array<Figure> = []
    const wanted = (plan.named ?? "").split(",")
    for (const name of attackNames.filter((each) => wanted.some((begins) => each.startsWith(begins)))) {
      const rounds: Array<Round> = []
      yield* stage.honest.ask("texts", schemaAttacks.includes(name))
      // Each attack is a user of its own: what an earlier one used up of its user's budgets would weaken the next.
      const key = yield* createKey(
        stage.gateway.dataDir,
        `attacker-${attackNames.indexOf(name)}`,
        "read-write",
      )
      const attacker = { ...stage.attacker, key }
      while (rounds.length < plan.rounds) rounds.push(yield* round(stage, attacker, name, plan.seconds))
      figures.push(...rows(name, rounds))
    }
    figures.push(
      figure(
        "the same process answers /health at the end",
        "",
        [(yield* isHealthy(stage.gateway)) ? 1 : 0],
        atLeast(1),
      ),
    )
    return [
      {
        title:
          "While one client attacks: another client's authenticated chat, and conversations that it begins",
        method:
          `${plan.rounds} rounds of ${plan.seconds} s quiet and ${plan.seconds} s of attack; chat every 25 ms on a fake engine, for S1 and S2 every 100 ms on weights; a conversation begun every second; ` +
          "the attacker at the lowest priority; the longest turn is the processor time of the gateway's thread between two ticks of a timer of 1 ms; memory is the gateway's peak and what decoders do not share (RssAnon), read five " +
          "times a second",
        figures,
      },
    ]
  })
