// Balances of a node on a shared store: carries out what Lease decides. Demands travel in the transaction that writes receipts,
// calls of other nodes arrive through StoreCalls.
import { Clock, Context, Duration, Effect, Latch, type Scope } from "effect"
import { monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { PaymentRequired } from "#domain/wire/Errors.ts"
import { CurrentAccountChanges } from "../accounts/AccountChanges.ts"
import { notWorking, type StoreUnavailable } from "../files/StoreErrors.ts"
import { connectionLost } from "../sql/PostgresError.ts"
import { StoreCalls } from "../sql/StoreCalls.ts"
import { StorePresence, whileRequestWaits } from "../sql/StorePresence.ts"
import type { Balance } from "./Balance.ts"
import { type Balances, balanceIn } from "./Balances.ts"
import {
  type Demand,
  decide,
  demandOf,
  hasMoney,
  isUnused,
  type Lease,
  type LeaseCommand,
  type LeaseEvent,
  newLease,
  tryLease,
} from "./Lease.ts"
import { chargesByOrg, type LedgerRows } from "./LedgerRows.ts"

/** How often leases are looked through for those that idle. Tests lengthen it. */
export const LeaseTicks = Context.Reference<Duration.Input>("edgewise/store/LeaseTicks", {
  defaultValue: () => Duration.millis(500),
})
/** How often nodes are looked for that died with leases. */
const endDeadEvery = Duration.minutes(1)

type Resume = (outcome: Effect.Effect<Balance, PaymentRequired>) => void

/** `writeSoon` has a batch written at once, also an empty one. */
export const leasedBalances = Effect.fnUntraced(function* (
  rows: LedgerRows,
  writeSoon: () => void,
): Effect.fn.Return<Balances, StoreUnavailable, Scope.Scope> {
  const clock = yield* Clock.Clock
  const now = () => monotonicMsOf(clock)
  const tickEvery = yield* LeaseTicks
  const leases = new Map<string, Lease>()
  const waiting = new Map<number, Resume>()
  /** Organizations with a demand for the next batch. */
  const demanding = new Set<string>()
  /** Organizations for which the other nodes are to be called. */
  let calls: Array<string> = []
  /** Open while this node has leases. */
  const held = yield* Latch.make(false)
  const timers = new Set<NodeJS.Timeout>()
  let lastId = 0

  const leaseFor = (orgId: string) => balanceIn(leases, orgId, newLease, isUnused)

  /** A real timer, not the Clock service: it waits for other processes, which a test's clock does not control. */
  const rest = (lease: Lease, ms: number): void => {
    const timer = setTimeout(() => {
      timers.delete(timer)
      happened(lease, { type: "rested" })
    }, ms)
    timers.add(timer)
  }

  const end = (id: number, outcome: Effect.Effect<Balance, PaymentRequired>): void => {
    const resume = waiting.get(id)
    waiting.delete(id)
    resume?.(outcome)
  }

  const carryOut = (lease: Lease, command: LeaseCommand, failure: Effect.Effect<never>): void => {
    switch (command.type) {
      case "admit":
        return end(command.id, Effect.succeed(lease))
      case "refuse":
        return end(command.id, Effect.fail(new PaymentRequired()))
      case "fail":
        return end(command.id, failure)
      case "exchange":
        demanding.add(lease.orgId)
        return writeSoon()
      case "call":
        return void calls.push(lease.orgId)
      case "pause":
        return rest(lease, command.ms)
    }
  }

  const happened = (lease: Lease, event: LeaseEvent, failure: Effect.Effect<never> = Effect.never): void => {
    for (const command of decide(lease, event, now())) carryOut(lease, command, failure)
  }

  const callOthers = Effect.suspend(() => {
    if (calls.length === 0) return Effect.void
    const called = calls
    calls = []
    // A call that is not heard costs a refusal, which a lost database costs anyway.
    return Effect.ignore(rows.leases.call(called))
  })

  const takeDemands = (charges: ReadonlyMap<string, number>): Map<string, Demand> => {
    const demands = new Map<string, Demand>()
    for (const orgId of new Set([...demanding, ...charges.keys()])) {
      const demand = demandOf(leaseFor(orgId), charges.get(orgId) ?? 0, now())
      if (demand !== undefined) demands.set(orgId, demand)
    }
    demanding.clear()
    return demands
  }

  // What a start of this node before has left.
  yield* Effect.mapError(rows.leases.endOwn, notWorking)
  const presence = yield* StorePresence
  const changes = yield* CurrentAccountChanges
  const stopNoticing = changes.listen((change) => {
    const changed = change === undefined ? leases.values() : [leases.get(change.orgId)]
    for (const lease of changed) if (lease !== undefined) happened(lease, { type: "changed" })
  })
  const { listen } = yield* StoreCalls
  const stopListening = listen((call) => {
    const lease = leases.get(rows.leases.calledFor(call) ?? "")
    if (lease !== undefined) happened(lease, { type: "called" })
  })
  yield* Effect.addFinalizer(() => {
    stopListening()
    stopNoticing()
    for (const timer of timers) clearTimeout(timer)
    return Effect.catch(rows.leases.endOwn, (error) =>
      Effect.logWarning("leased money could not be given back; it is at the next start", error.message),
    )
  })
  yield* held.await.pipe(
    Effect.andThen(Effect.sleep(tickEvery)),
    Effect.andThen(
      Effect.sync(() => {
        // What is given back while the database is away would be lost to the requests that go on.
        if (presence.isAway()) return
        held.closeUnsafe()
        for (const lease of leases.values()) {
          if (!hasMoney(lease)) continue
          held.openUnsafe()
          happened(lease, { type: "tick" })
        }
      }),
    ),
    Effect.forever,
    Effect.forkScoped,
  )
  let dead: ReadonlyMap<string, number> = new Map()
  const endDead = Effect.flatMap(Effect.exit(rows.leases.endDead(dead)), (exit) => {
    dead = exit._tag === "Success" ? exit.value : new Map()
    return Effect.void
  })
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.andThen(
        Effect.sleep(endDeadEvery),
        Effect.suspend(() => endDead),
      ),
    ),
  )

  return {
    reserve: (orgId, microDollars) =>
      Effect.suspend(() => {
        const lease = leaseFor(orgId)
        const nowMs = now()
        const isTrusted = changes.isCurrent(nowMs) || presence.isInGrace()
        if (tryLease(lease, microDollars, nowMs, isTrusted)) return Effect.succeed(lease)
        // What is not leased cannot be had without the database.
        if (presence.isAway()) return Effect.die(connectionLost("the database does not answer"))
        return Effect.callback<Balance, PaymentRequired>((resume) => {
          const id = ++lastId
          waiting.set(id, resume)
          happened(lease, { type: "wanted", id, microDollars })
        })
      }),

    released: (balance) => happened(balance as Lease, { type: "released" }),

    write: (batch) =>
      Effect.suspend(() => {
        const charges = chargesByOrg(batch)
        const demands = takeDemands(charges)
        if (batch.length === 0 && demands.size === 0) return Effect.void
        return rows.exchange(batch, demands).pipe(
          whileRequestWaits,
          Effect.onError((cause) =>
            Effect.sync(() => {
              for (const orgId of demands.keys())
                happened(leaseFor(orgId), { type: "failed" }, Effect.orDie(Effect.failCause(cause)))
              if (demands.size > 0) held.openUnsafe()
            }),
          ),
          Effect.flatMap((answers) => {
            for (const orgId of new Set([...charges.keys(), ...demands.keys()])) {
              if ((answers.get(orgId)?.lease ?? 0) > 0) held.openUnsafe()
              happened(leaseFor(orgId), {
                type: "answered",
                asked: demands.get(orgId)?.want !== undefined,
                charged: charges.get(orgId) ?? 0,
                row: answers.get(orgId),
              })
            }
            return callOthers
          }),
        )
      }),
    writeIf: (receipt, change) =>
      Effect.map(rows.exchangeIf(receipt, change), (answers) => {
        if (answers === undefined) return false
        const { orgId } = receipt
        if ((answers.get(orgId)?.lease ?? 0) > 0) held.openUnsafe()
        const row = answers.get(orgId)
        happened(leaseFor(orgId), { type: "answered", asked: false, charged: 0, row })
        return true
      }),
  }
})
