// The transcription suite: which questions, in which order, for how long. Rows, no logic.
import { Effect, type Scope } from "effect"
import type { WhisperSize } from "../sizes/whisper/Whisper.ts"
import type { ChildFailed } from "../support/Child.ts"
import type { Section } from "../support/Findings.ts"
import { type RealTimePlan, realTime } from "./RealTime.ts"
import { type SharesPlan, shares } from "./Shares.ts"
import { sizedTranscriptionSuite } from "./Sized.ts"
import { demonstrationStage, startStage } from "./Stage.ts"
import { type UploadsPlan, uploads } from "./Uploads.ts"

interface Plan {
  readonly realTime: RealTimePlan
  readonly shares: SharesPlan
  readonly uploads: UploadsPlan
}

/** Under three minutes on two cores. */
const fullPlan: Plan = {
  realTime: { seconds: 60, rounds: 9, withinMs: 60_000 },
  shares: { clients: 4, seconds: 4, forMs: 5_000, rounds: 5, withinMs: 40_000 },
  uploads: { rounds: 7, withinMs: 40_000 },
}

/** Under 40 seconds: shows that it works and roughly where things stand. */
const quickPlan: Plan = {
  realTime: { seconds: 20, rounds: 3, withinMs: 12_000 },
  shares: { clients: 4, seconds: 4, forMs: 3_000, rounds: 1, withinMs: 1_000 },
  uploads: { rounds: 2, withinMs: 8_000 },
}

interface TranscriptionSuiteOptions {
  readonly quick: boolean
  readonly profileDir: string | undefined
  /** Undefined for the demonstration weights. */
  readonly size: WhisperSize | undefined
  readonly threads: number | undefined
}

export const transcriptionSuite = ({
  profileDir,
  quick,
  size,
  threads,
}: TranscriptionSuiteOptions): Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope> =>
  size === undefined
    ? demonstrationSuite({ quick, profileDir })
    : sizedTranscriptionSuite({ quick, profileDir, size, threads })

const demonstrationSuite = (options: {
  readonly quick: boolean
  readonly profileDir: string | undefined
}): Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const plan = options.quick ? quickPlan : fullPlan
    const stage = yield* startStage({ ...demonstrationStage, profileDir: options.profileDir })
    return [
      yield* realTime(stage, plan.realTime),
      yield* shares(stage, plan.shares),
      yield* uploads(stage, plan.uploads),
    ]
  })
