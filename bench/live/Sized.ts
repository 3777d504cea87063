// The live suite on generated weights of real size: the time from `stop` to the final text, how many sessions
// are admitted, and the lag of their captions. For weights whose encoder is too large for captions it names a draft.
import { availableParallelism } from "node:os"
import { Effect } from "effect"
import { atLeast, atMost, type Goal } from "#harness/report/Figure.ts"
import { type WhisperSize, whisperFiles } from "../sizes/whisper/Whisper.ts"
import { startChild } from "../support/Child.ts"
import { startGateway } from "../support/Gateway.ts"
import { type Suite, suite } from "../support/Suite.ts"
import { entryOf } from "../transcription/Models.ts"
import { generated } from "../transcription/Sized.ts"
import type { HearingCommands } from "./hearingMain.ts"
import {
  type CapacityPlan,
  capacitySection,
  type LastWordPlan,
  lastWordSection,
  listenModel,
} from "./Sessions.ts"

interface Sizes {
  readonly weights: WhisperSize
  readonly draft?: WhisperSize
  readonly goals: { readonly speakers: Goal; readonly lagP95: Goal }
}

const goals = (speakers: number, lagMs: number): Sizes["goals"] => ({
  speakers: atLeast(speakers),
  lagP95: atMost(lagMs),
})

const parts = {
  base: { weights: "base", goals: goals(4, 1_500) },
  "base-int8": { weights: "base-int8", goals: goals(4, 1_500) },
  small: { weights: "small", goals: goals(1, 2_000) },
  "small-int8": { weights: "small-int8", goals: goals(1, 2_000) },
  turbo: { weights: "turbo", draft: "base", goals: goals(1, 2_000) },
  "turbo-int8": { weights: "turbo-int8", draft: "base-int8", goals: goals(1, 2_000) },
} as const satisfies Readonly<Record<string, Sizes>>

type LiveSize = keyof typeof parts

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
  readonly capacity: CapacityPlan
}

const full: Plan = {
  lastWord: { rounds: 9, withinMs: 90_000, warmUps: 1 },
  // Each new session is measured before the next one requests admission.
  capacity: { most: 24, everyMs: 5_000, watchedMs: 20_000 },
}

const quick: Plan = {
  lastWord: { rounds: 1, withinMs: 0, warmUps: 1 },
  capacity: { most: 8, everyMs: 4_000, watchedMs: 8_000 },
}

export const sizedLiveSuite = (size: LiveSize): Suite => {
  const { draft, goals: wanted, weights }: Sizes = parts[size]
  return suite({
    name: "live",
    plans: { full, quick },
    start: ({ profileDir, threads = availableParallelism() }) =>
      Effect.gen(function* () {
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
          draftEntry === undefined
            ? [entry]
            : [{ ...entry, transcription: { draft: draftEntry.id } }, draftEntry]
        const hearing = yield* startChild<HearingCommands>({
          name: "hearing",
          entry: new URL("./hearingMain.ts", import.meta.url),
        })
        yield* hearing.ask("open", { files, options: {}, threads })
        return { hearing, gateway: yield* startGateway({ models, profileDir }) }
      }),
    died: ({ gateway, hearing }) => Effect.raceFirst(hearing.died, gateway.child.died),
    sections: {
      final: ({ gateway, hearing }, plan) => lastWordSection(gateway, hearing, plan.lastWord),
      capacity: ({ gateway }, plan) => capacitySection(gateway, plan.capacity, wanted),
    },
  })
}
