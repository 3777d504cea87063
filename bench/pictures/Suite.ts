// The pictures suite: its sections, their order and their duration.
import { Effect, type Scope } from "effect"
import { visionWeights } from "../sizes/vision/VisionWeights.ts"
import { type ChildFailed, startChild } from "../support/Child.ts"
import type { Section } from "../support/Findings.ts"
import { besideReplies } from "./BesideReplies.ts"
import { firstTokens } from "./FirstToken.ts"
import { memoryAfter } from "./Memory.ts"
import { startStage } from "./Stage.ts"
import type { TowerCommands } from "./towerMain.ts"

interface PicturesOptions {
  readonly quick: boolean
  readonly profileDir: string | undefined
}

/** Three minutes on two cores, the writing of the weights at the first run not counted. */
export const picturesSuite = ({
  profileDir,
  quick,
}: PicturesOptions): Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const stage = yield* startStage(profileDir)
    const memory = yield* memoryAfter(stage, quick ? 50 : 1_000)
    const tower = yield* startChild<TowerCommands>({
      name: "tower",
      entry: new URL("./towerMain.ts", import.meta.url),
    })
    const { mmproj } = yield* Effect.promise(() => visionWeights("smol-256m"))
    yield* tower.ask("open", mmproj)
    const rounds = quick ? 3 : 7
    const first = yield* firstTokens(stage, tower, { rounds, withinMs: 90_000 })
    const beside = yield* besideReplies(stage, { rounds: quick ? 3 : 5, withinMs: 60_000, quietMs: 3_000 })
    return [first, beside, memory]
  })
