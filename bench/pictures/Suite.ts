// The pictures suite: its sections, their order and their duration.
import { Effect } from "effect"
import { visionWeights } from "../sizes/vision/VisionWeights.ts"
import { startChild } from "../support/Child.ts"
import type { RoundsPlan } from "../support/Rounds.ts"
import { suite } from "../support/Suite.ts"
import { type BesidePlan, besideReplies } from "./BesideReplies.ts"
import { firstTokens } from "./FirstToken.ts"
import { memoryAfter } from "./Memory.ts"
import { type Stage, startStage } from "./Stage.ts"
import type { TowerCommands } from "./towerMain.ts"

interface Plan {
  /** Chats after which the memory is read. */
  readonly pictures: number
  readonly first: RoundsPlan
  readonly beside: BesidePlan
}

/** Three minutes on two cores, the writing of the weights at the first run not counted. */
const full: Plan = {
  pictures: 1_000,
  first: { rounds: 7, withinMs: 90_000 },
  beside: { rounds: 5, withinMs: 60_000, quietMs: 3_000 },
}
const quick: Plan = {
  pictures: 50,
  first: { rounds: 3, withinMs: 90_000 },
  beside: { rounds: 3, withinMs: 60_000, quietMs: 3_000 },
}

const firstSection = (stage: Stage, plan: RoundsPlan) =>
  Effect.gen(function* () {
    const tower = yield* startChild<TowerCommands>({
      name: "tower",
      entry: new URL("./towerMain.ts", import.meta.url),
    })
    const { mmproj } = yield* Effect.promise(() => visionWeights("smol-256m"))
    yield* tower.ask("open", mmproj)
    return yield* firstTokens(stage, tower, plan)
  })

export const picturesSuite = suite({
  name: "pictures",
  plans: { full, quick },
  start: ({ profileDir }) => startStage(profileDir),
  sections: {
    // First, because it is about a node that has just started.
    memory: (stage, plan) => memoryAfter(stage, plan.pictures),
    first: (stage, plan) => firstSection(stage, plan.first),
    beside: (stage, plan) => besideReplies(stage, plan.beside),
  },
})
