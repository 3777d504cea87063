// Which nodes of a shared store are dead, judged by their counters and no clock. Pure.
//
// Every node raises its counter in the store at intervals and reads those of all others in the same statement. A counter that did not
// change over five statements of this node that succeeded belongs to a dead node. While the store is away no statement succeeds, so
// nothing is judged; clocks of nodes and of the database play no part.
import { Schema } from "effect"

/** Statements of this node that find another's counter unchanged before that node counts as dead: 15 s. */
export const deadAfter = 5

/** What a node can do for the others, as it said in its last beat. */
export const Offer = Schema.Struct({
  /** `host:port` of its edge listener; empty if it has none. */
  address: Schema.String,
  /** Ids of the models that it deploys. */
  models: Schema.Array(Schema.String),
  /** Transcription jobs that it could begin at once. */
  freeSlots: Schema.Int,
})
export type Offer = typeof Offer.Type

export const noOffer: Offer = { address: "", models: [], freeSlots: 0 }

/** A row of `nodes`. */
export interface NodeRow {
  readonly id: string
  readonly beat: number
  /** Milliseconds since 1970 by the database's clock. */
  readonly seen_at_ms: number
  readonly offer: string
}

export interface Neighbour {
  readonly id: string
  readonly beat: number
  readonly seenAtMs: number
  /** What changes while the node runs. A node of an earlier version has no counter and only writes its time. */
  readonly sign: string
  /** Consecutive statements of this node that found `sign` unchanged. */
  readonly still: number
  /** When this node first saw `sign`; `monotonicMs`. */
  readonly sinceMs: number
  readonly offer: Offer
}

const decodeOffer = Schema.decodeUnknownOption(Schema.fromJsonString(Offer))

const offerOf = (text: string): Offer => {
  const decoded = decodeOffer(text)
  return decoded._tag === "Some" ? decoded.value : noOffer
}

/** What is known of the others after one more statement has read `rows`. Nodes whose rows are gone are forgotten. */
export const observe = (
  known: ReadonlyMap<string, Neighbour>,
  rows: ReadonlyArray<NodeRow>,
  self: string,
  nowMs: number,
): ReadonlyMap<string, Neighbour> => {
  const next = new Map<string, Neighbour>()
  for (const { beat, id, offer, seen_at_ms } of rows) {
    if (id === self) continue
    const sign = beat === 0 ? `seen ${seen_at_ms}` : `beat ${beat}`
    const before = known.get(id)
    next.set(
      id,
      before?.sign === sign
        ? { ...before, still: before.still + 1 }
        : { id, beat, seenAtMs: seen_at_ms, sign, still: 0, sinceMs: nowMs, offer: offerOf(offer) },
    )
  }
  return next
}

export const isDead = ({ still }: Neighbour): boolean => still >= deadAfter
