// What the exchanges and WebSockets of one listener share.
import type { BodyBlocks } from "#http/BodyBlocks.ts"
import type { RequestObserver } from "#http/NodeMeters.ts"
import type { AnonymousBudget } from "../AnonymousBudget.ts"
import type { Deadlines } from "../Deadlines.ts"
import type { FairSendQueue } from "../FairSendQueue.ts"
import type { LoopTicks } from "../LoopTicks.ts"
import type { TransportCounters } from "../TransportCounters.ts"
import type { TransportSettings } from "../TransportSettings.ts"
import type { SharedHeaders } from "./Channel.ts"

export interface ListenerState {
  readonly settings: TransportSettings
  readonly counters: TransportCounters
  readonly deadlines: Deadlines
  readonly blocks: BodyBlocks
  readonly sendQueue: FairSendQueue
  readonly ticks: LoopTicks
  /** Sent with every response. */
  readonly responseHeaders: SharedHeaders
  /** Makes ids for requests without one. */
  readonly newId: () => string
  /** Called for every response that has ended. */
  readonly observer: RequestObserver | undefined
  /** Undefined if requests without a credential are not limited. */
  readonly anonymous: AnonymousBudget | undefined
  /** True when the listener stops: every response then closes its connection. */
  closing: boolean
}
