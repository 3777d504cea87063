// The live suite on generated weights of a size that people run: how long after `stop` the final text comes, how many
// speakers are admitted, and how far their captions lag. Weights whose encoder is too large for captions name a draft.
import { Effect, type Scope } from "effect"
import { type WhisperSize, whisperFiles } from "../sizes/whisper/Whisper.ts"
import { type ChildFailed, startChild } from "../support/Child.ts"
import type { Goal, Section } from "../support/Findings.ts"
import { startGateway } from "../support/Gateway.ts"
import { entryOf } from "../transcription/Models.ts"
import { generated } from "../transcription/Sized.ts"
import type { HearingDesk } from "./hearingMain.ts"
import { type LastWordPlan, lastWordSection, listenModel, type RoomPlan, roomSection } from "./Sessions.ts"

interface Sizes {
  readonly weights: WhisperSize
  readonly draft?: WhisperSize
  readonly goals: { readonly speakers: Goal; readonly lagP95: Goal }
}

const goals = (speakers: number, lagMs: number): Sizes["goals"] => ({
  speakers: { is: "at least", value: speakers },
  lagP95: { is: "at most", value: lagMs },
})

const parts = {
  base: { weights: "base", goals: goals(4, 1_500) },
  "base-int8": { weights: "base-int8", goals: goals(4, 1_500) },
  small: { weights: "small", goals: goals(1, 2_000) },
  "small-int8": { weights: "small-int8", goals: goals(1, 2_000) },
  turbo: { weights: "turbo", draft: "base", goals: goals(1, 2_000) },
  "turbo-int8": { weights: "turbo-int8", draft: "base-int8", goals: goals(1, 2_000) },
} as const satisfies Readonly<Record<string, Sizes>>

export type LiveSize = keyof typeof parts

export const liveSizes: readonly [LiveSize, ...ReadonlyArray<LiveSize>] = [
  "base",
  "base-int8",
  "small",
  "small-int8",
  "turbo",
  "turbo-int8",
]

interface Plan {
  readonly lastWord: LastWordPlan
  readonly room: RoomPlan
}

const full: Plan = {
  lastWord: { rounds: 9, withinMs: 90_000, warmUps: 1 },
  // A newcomer is measured before the next one asks.
  room: { most: 24, everyMs: 5_000, watchedMs: 20_000 },
}

const quick: Plan = {
  lastWord: { rounds: 1, withinMs: 0, warmUps: 1 },
  room: { most: 8, everyMs: 4_000, watchedMs: 8_000 },
}

export const sizedLiveSuite = (options: {
  readonly size: LiveSize
  readonly quick: boolean
  readonly threads: number
  readonly profileDir: string | undefined
}): Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const { profileDir, quick: short, size, threads } = options
    const plan = short ? quick : full
    const { draft, goals: wanted, weights }: Sizes = parts[size]
    const files = yield* generated(() => whisperFiles(weights))
    const entry = { ...entryOf({ files, options: {}, catalogThreads: threads }), id: listenModel }
    const draftEntry =
      draft === undefined
        ? undefined
        : entryOf({
            files: yield* generated(() => whisperFiles(draft)),
            options: {},
            catalogThreads: threads,
          })
    const models =
      draftEntry === undefined ? [entry] : [{ ...entry, transcription: { draft: draftEntry.id } }, draftEntry]
    const hearing = yield* startChild<HearingDesk>({
      name: "hearing",
      entry: new URL("./hearingMain.ts", import.meta.url),
    })
    yield* hearing.ask("open", { files, options: {}, threads })
    const gateway = yield* startGateway({ models, profileDir })
    const sections = Effect.gen(function* () {
      return [
        yield* lastWordSection(gateway, hearing, plan.lastWord),
        yield* roomSection(gateway, plan.room, wanted),
      ]
    })
    return yield* Effect.raceAllFirst([sections, hearing.died, gateway.child.died])
  })
