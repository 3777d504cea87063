// The part of a prepaid balance that this node may spend, of one organization on a store that several nodes share: when to ask
// the database for more, when to ask the other nodes for what they do not need, when to refuse, and when to give back.
//
// `decide` takes one event and returns what must be done about it. It waits for nothing and reads no clock, so that tests can
// play any order of events. What the database makes of a demand is in LedgerRows. A request whose money is leased already
// never comes here (see UsageLedger.reserve).
import { type Balance, newBalance, readBack, tryReserve } from "./Balance.ts"

/** A lease that no request has used for so long is given back, milliseconds. */
export const idleMs = 2_000
/** Longest age of what is known of an invoiced organization, milliseconds. Protocol 5.2 allows 5 s until a change is noticed. */
const knownMs = 2_000
/**
 * Pauses between the times that the database is asked in one round, milliseconds. In the first one the other nodes get the call and
 * give back. A guess: together far below the 200 ms in which a refusal is promised.
 */
const pausesMs: ReadonlyArray<number> = [15, 30, 60]
/** For so long after a refusal the same amount is refused without a statement, milliseconds. A guess. */
const refusedMs = 250
/** Least time between two calls for the same organization, milliseconds: each one reaches all nodes. A guess. */
const callEveryMs = 250
/** For so long after a call whatever becomes free is given back with the next receipts, milliseconds. A guess. */
const calledMs = 1_000

interface Waiting {
  readonly id: number
  readonly microDollars: number
}

/** `credits` is the lease: of it, `unflushed` and `reserved` are used. */
export interface Lease extends Balance {
  waiting: Array<Waiting>
  /** Where the round of asking is: none; the next batch asks; it is being asked; a pause until it asks again. */
  round: "none" | "due" | "asked" | "pausing"
  /** How often this round has asked. */
  asks: number
  /** Another process has changed the organization: the database is asked before the next request that is not leased for. */
  isStale: boolean
  /** The next batch gives back what is not used. */
  givesBack: boolean
  /** A demand was sent and no answer came: the database may have leased more to this node than `credits`. */
  isUnknown: boolean
  /** When a request last used it. */
  usedAtMs: number
  calledUntilMs: number
  calledOthersAtMs: number
  refusedUntilMs: number
  /** The least amount that was refused. */
  refusedMicroDollars: number
}

export const newLease = (orgId: string): Lease => ({
  ...newBalance(orgId),
  waiting: [],
  round: "none",
  asks: 0,
  isStale: false,
  givesBack: false,
  isUnknown: false,
  usedAtMs: Number.NEGATIVE_INFINITY,
  calledUntilMs: Number.NEGATIVE_INFINITY,
  calledOthersAtMs: Number.NEGATIVE_INFINITY,
  refusedUntilMs: Number.NEGATIVE_INFINITY,
  refusedMicroDollars: 0,
})

/** What the database says of an organization in the transaction that wrote its charges and its demand. */
export interface LeaseAnswer {
  /** The balance, leases included. */
  readonly credits: number
  readonly paymentMethod: boolean
  /** Of this node. */
  readonly lease: number
  /** Of the other nodes together. */
  readonly leasedElsewhere: number
}

export type LeaseEvent =
  /** A request needs the amount and was not admitted at once. */
  | { readonly type: "wanted"; readonly id: number; readonly microDollars: number }
  /** A reservation was settled or cancelled. */
  | { readonly type: "released" }
  /** The pause is over. */
  | { readonly type: "rested" }
  /** Charges of `charged` and the demand are written; `row` is undefined if the organization does not exist. */
  | {
      readonly type: "answered"
      readonly asked: boolean
      readonly charged: number
      readonly row: LeaseAnswer | undefined
    }
  /** A batch with a demand could not be written, or its answer was lost. */
  | { readonly type: "failed" }
  /** Another process has added credit, or changed how the organization pays. */
  | { readonly type: "changed" }
  /** Another node needs money of this organization. */
  | { readonly type: "called" }
  | { readonly type: "tick" }

export type LeaseCommand =
  | { readonly type: "admit" | "refuse" | "fail"; readonly id: number }
  /** Write a batch now; `demandOf` says what to ask in it. */
  | { readonly type: "exchange" }
  /** Ask the other nodes to give back. */
  | { readonly type: "call" }
  /** `rested` after this time. */
  | { readonly type: "pause"; readonly ms: number }

const nothing: ReadonlyArray<LeaseCommand> = []
const exchange: ReadonlyArray<LeaseCommand> = [{ type: "exchange" }]

/** What of the lease is neither reserved nor charged. */
export const spare = (lease: Lease): number => Math.max(0, lease.credits - lease.unflushed - lease.reserved)

/**
 * Sets `amount` aside if the lease has it, or if the organization is known to be invoiced: by an answer of the last seconds, or by any
 * one if `isTrusted`, which says that changes would have been noticed.
 */
export const tryLease = (lease: Lease, amount: number, nowMs: number, isTrusted = false): boolean => {
  if (lease.paymentMethod && (lease.isStale || (!isTrusted && nowMs - lease.readAtMs >= knownMs)))
    return false
  if (!tryReserve(lease, amount)) return false
  lease.usedAtMs = nowMs
  return true
}

/** Admits those that wait and can be paid, in their order. `credits` is the whole balance, where it was just read. */
const admitWaiting = (lease: Lease, nowMs: number, credits = 0): Array<LeaseCommand> => {
  const commands: Array<LeaseCommand> = []
  lease.waiting = lease.waiting.filter(({ id, microDollars }) => {
    // Money that is reserved, here or elsewhere, still belongs to the organization: work that costs nothing may go on.
    const isFree = microDollars === 0 && credits > lease.unflushed
    if (isFree) lease.open++
    else if (!tryLease(lease, microDollars, nowMs)) return true
    commands.push({ type: "admit", id })
    return false
  })
  return commands
}

const endRound = (lease: Lease, type: "refuse" | "fail"): Array<LeaseCommand> => {
  const commands = lease.waiting.map(({ id }): LeaseCommand => ({ type, id }))
  lease.waiting = []
  lease.round = "none"
  return commands
}

const answered = (
  lease: Lease,
  { asked, charged, row }: LeaseEvent & { readonly type: "answered" },
  nowMs: number,
): ReadonlyArray<LeaseCommand> => {
  lease.isStale = false
  lease.isUnknown = false
  readBack(lease, row && { credits: row.lease, paymentMethod: row.paymentMethod }, charged, nowMs)
  const commands = admitWaiting(lease, nowMs, row?.credits)
  // What waits was not asked for in this batch, because it gave back.
  if (!asked) return lease.round === "due" ? [...commands, ...exchange] : commands
  if (lease.waiting.length === 0) {
    lease.round = "none"
    return commands
  }
  // Some came while it was being asked, and there is money that no node has leased.
  if (row !== undefined && row.credits > row.lease + row.leasedElsewhere) {
    lease.round = "due"
    return [...commands, ...exchange]
  }
  lease.asks++
  const pauseMs = pausesMs[lease.asks - 1]
  if (row === undefined || row.leasedElsewhere <= 0 || pauseMs === undefined) {
    lease.refusedUntilMs = nowMs + refusedMs
    lease.refusedMicroDollars = Math.min(...lease.waiting.map(({ microDollars }) => microDollars))
    return [...commands, ...endRound(lease, "refuse")]
  }
  lease.round = "pausing"
  if (lease.asks === 1 && nowMs - lease.calledOthersAtMs >= callEveryMs) {
    lease.calledOthersAtMs = nowMs
    commands.push({ type: "call" })
  }
  commands.push({ type: "pause", ms: pauseMs })
  return commands
}

export const decide = (lease: Lease, event: LeaseEvent, nowMs: number): ReadonlyArray<LeaseCommand> => {
  switch (event.type) {
    case "wanted": {
      const { id, microDollars } = event
      if (tryLease(lease, microDollars, nowMs)) return [{ type: "admit", id }]
      if (nowMs < lease.refusedUntilMs && microDollars >= lease.refusedMicroDollars) {
        return [{ type: "refuse", id }]
      }
      lease.waiting.push({ id, microDollars })
      if (lease.round !== "none") return nothing
      lease.round = "due"
      lease.asks = 0
      return exchange
    }
    case "released":
      return lease.waiting.length === 0 ? nothing : admitWaiting(lease, nowMs)
    case "rested":
      if (lease.round !== "pausing") return nothing
      lease.round = lease.waiting.length === 0 ? "none" : "due"
      return lease.round === "due" ? exchange : nothing
    case "answered":
      return answered(lease, event, nowMs)
    case "failed":
      lease.isUnknown = true
      return lease.round === "none" ? nothing : endRound(lease, "fail")
    case "changed":
      lease.isStale = true
      lease.refusedUntilMs = Number.NEGATIVE_INFINITY
      return nothing
    case "called":
      lease.calledUntilMs = nowMs + calledMs
      if (spare(lease) === 0 && !lease.isUnknown) return nothing
      lease.givesBack = true
      return exchange
    case "tick":
      if (lease.waiting.length > 0) return nothing
      if (!lease.isUnknown && (spare(lease) === 0 || nowMs - lease.usedAtMs < idleMs)) return nothing
      lease.givesBack = true
      return exchange
  }
}

/** What a batch asks of the database for one organization, beside its charges. */
export interface Demand {
  /** At least so much more, if the balance has it. Undefined: nothing is asked. */
  readonly want: number | undefined
  /** Of the lease, once the charges of the batch are taken from it, at most so much stays. Undefined: all. */
  readonly keep: number | undefined
}

/**
 * The demand of the next batch, in which `charged` is written; undefined if it has none. What it gives back cannot be spent from
 * now on: if the batch fails, it may have been given back or not.
 */
export const demandOf = (lease: Lease, charged: number, nowMs: number): Demand | undefined => {
  const mayGive = spare(lease) > 0 || lease.isUnknown
  if (mayGive && (lease.givesBack || (nowMs < lease.calledUntilMs && lease.waiting.length === 0))) {
    lease.givesBack = false
    lease.credits = lease.unflushed + lease.reserved
    return { want: undefined, keep: lease.credits - charged }
  }
  lease.givesBack = false
  if (lease.round !== "due") return undefined
  lease.round = "asked"
  const used = lease.unflushed + lease.reserved
  const wanted = lease.waiting.reduce((sum, { microDollars }) => sum + microDollars, 0)
  // Work that costs nothing needs a lease above zero all the same.
  const least = lease.credits - lease.unflushed <= 0 ? 1 : 0
  return { want: Math.max(least, wanted + used - lease.credits, 0), keep: undefined }
}

/** The database may have leased money to this node, which `tick` gives back in time. */
export const hasMoney = ({ credits, isUnknown }: Lease): boolean => credits > 0 || isUnknown

/** Nothing depends on it: it may be forgotten. */
export const isUnused = (lease: Lease): boolean =>
  lease.open === 0 && lease.unflushed === 0 && !hasMoney(lease) && lease.round === "none"
