// What the parts that do transcription jobs share: the services of the node, and the state of its unfinished jobs between their slices.
import type { Context } from "effect"
import type { Drain } from "#actors/Drain.ts"
import type { Model } from "#actors/model/Model.ts"
import type { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { Decoder } from "#audio/Decoder.ts"
import type { TranscriptProgress } from "#domain/audio/Transcript.ts"
import type { NodeMeters } from "#http/NodeMeters.ts"
import type { Accounts } from "#store/accounts/Accounts.ts"
import type { Job, JobChange, SavedProgress } from "#store/ledger/JobRows.ts"
import type { Jobs } from "#store/ledger/Jobs.ts"
import type { Reservation, Settlement, UsageLedger } from "#store/ledger/UsageLedger.ts"
import type { SharedUploadsView } from "./SharedUploads.ts"

/** What the end of a job charges. */
interface Bill {
  readonly reservation: Reservation
  readonly settlement: Settlement
}

/** State of an unfinished job between its slices, in memory. That of a job with a shared upload is in its row as well. */
export interface Kept {
  progress: TranscriptProgress | undefined
  /** Milliseconds of audio decoded so far. */
  decodedMs: number | undefined
  /** Failures of the engine since the last progress. */
  engineFailures: number
  /** Its owner has cancelled it. */
  cancelled: boolean
  /** The model of its last slice: the tokens of `progress` are valid for its weights only. */
  model: Model<"transcription"> | undefined
  /** Identity of that model's weights. */
  weights: string
  /** When the node first found no such model; `monotonicMs`. */
  missingSinceMs: number | undefined
  /** Set by a slice whose end charges the job. */
  bill: Bill | undefined
}

export const newKept = (decodedMs: number | undefined, saved?: SavedProgress): Kept => ({
  progress: saved?.progress,
  decodedMs,
  engineFailures: saved?.engineFailures ?? 0,
  cancelled: false,
  model: undefined,
  weights: saved?.weights ?? "",
  missingSinceMs: undefined,
  bill: undefined,
})

export const savedOf = ({ engineFailures, progress, weights }: Kept): SavedProgress => ({
  progress,
  weights,
  engineFailures,
})

/** The services and the state that all jobs of a node share. */
export interface JobWorld {
  readonly jobs: Jobs["Service"]
  readonly ledger: UsageLedger["Service"]
  readonly registry: ModelRegistry["Service"]
  readonly meters: NodeMeters
  readonly drain: Drain["Service"]
  /** Where uploads lie that all nodes reach; undefined if each node keeps those that it accepted. */
  readonly uploads: SharedUploadsView | undefined
  readonly uploadRetryMs: number
  /** Ids of the models whose shared jobs this node takes. */
  readonly models: () => ReadonlyArray<string>
  readonly services: Context.Context<Accounts | Decoder | ModelRegistry | UsageLedger>
  /** Job id → progress of the unfinished job. Lost in a crash of the node, after which jobs start from the beginning. */
  readonly kept: Map<string, Kept>
  /** Jobs whose outcome could not be stored, by their ids. They go back into the queue once the database works again. */
  readonly lost: Map<string, { readonly job: Job; readonly change: JobChange }>
}
