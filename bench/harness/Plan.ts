// What a run measures and how, after the command line was checked.

import type { Target } from "./client/Exchange.ts"
import type { SpeechAsk } from "./client/SpeechRequest.ts"
import type { ConversationPlan } from "./conversation/Conversations.ts"
import type { Clip } from "./data/Clip.ts"
import type { PromptSource } from "./data/Prompts.ts"
import type { DrivePlan } from "./load/Drive.ts"
import type { Objective } from "./load/Objective.ts"

/** What one request is; a mixed load has several of them, but no conversations: a request of those is a turn. */
export const kinds = ["text", "speech", "transcription", "live", "conversation"] as const
export type Kind = (typeof kinds)[number]

export interface TextPlan {
  readonly model: string
  readonly prompts: PromptSource
  readonly maxTokens: number
  readonly temperature: number
  readonly fields: Readonly<Record<string, unknown>>
}

export interface SpeechPlan extends Omit<SpeechAsk, "input"> {
  /** The text that a request says. */
  readonly input: (index: number) => string
  readonly dataset: string
}

export interface ListenPlan {
  readonly model: string
  readonly clips: ReadonlyArray<Clip>
  readonly dataset: string
  readonly language: string | undefined
  readonly fields: Readonly<Record<string, unknown>>
}

interface TranscriptionPlan extends ListenPlan {
  readonly stream: boolean
}

export const liveProtocols = ["realtime", "edgewise"] as const

interface LivePlan extends ListenPlan {
  readonly protocol: (typeof liveProtocols)[number]
}

export interface Plans {
  readonly text?: TextPlan
  readonly speech?: SpeechPlan
  readonly transcription?: TranscriptionPlan
  readonly live?: LivePlan
  readonly conversation?: ConversationPlan
}

export interface Plan {
  readonly suite: string
  readonly target: Target
  readonly plans: Plans
  /** How often each kind occurs in a mixed load, relative to the others. */
  readonly shares: Partial<Readonly<Record<Kind, number>>>
  /** The load of one point; a ramp replaces `load`. */
  readonly drive: DrivePlan
  readonly objective: Objective | undefined
  /** Search for the knee from the load of `drive` on. */
  readonly ramp: { readonly most: number; readonly trials: number; readonly precision: number } | undefined
}
