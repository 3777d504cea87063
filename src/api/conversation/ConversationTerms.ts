// What a conversation is made with: its caller, models, history and settings, and where its events go.
import type { Effect, Scope } from "effect"
import type { ConversationMeters } from "#domain/conversation/ConversationMeters.ts"
import type { History } from "#domain/conversation/History.ts"
import type { ConversationSettings } from "#domain/conversation/Settings.ts"
import type { RateLimited } from "#domain/wire/Errors.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import type { Tell } from "../live/RealtimeItems.ts"
import type { SocketShare } from "../live/SocketShare.ts"
import type { SessionTrace } from "../tracing/SessionTrace.ts"
import type { ConversationModels } from "./ConversationModels.ts"
import type { ConversationReport } from "./ConversationSessions.ts"
import type { Guard } from "./Guard.ts"
import type { Playout } from "./Playout.ts"

export interface ConversationTerms {
  readonly tell: Tell
  readonly newId: () => string
  readonly caller: Principal
  readonly scope: Scope.Scope
  readonly guard: Guard
  readonly models: ConversationModels
  readonly conversationId: string
  readonly history: History
  readonly settings: () => ConversationSettings
  readonly meters: ConversationMeters
  /** Undefined where no traces are exported. */
  readonly trace: SessionTrace | undefined
  /** Audio of the user so far, milliseconds. */
  readonly heardMs: () => number
  /** Counts an answer as a request of the caller. */
  readonly admit: Effect.Effect<void, RateLimited>
  readonly report: ConversationReport
  readonly share: SocketShare
  /** Of a call; undefined where the audio of answers is in events. */
  readonly playout: Playout | undefined
}
