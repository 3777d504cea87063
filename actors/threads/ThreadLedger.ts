// Which models work at this moment, and how many CPU threads each may use meanwhile. A Model joins with its claim and
// reports when its engine begins and ends to work; a model whose share changes is notified at once.

import type { Urgency } from "#domain/queues/FairQueue.ts"
import { type MachineCores, mostThreads } from "#domain/threads/MachineCores.ts"
import { shareThreads, type Worker } from "#domain/threads/ThreadShares.ts"

/** One model's entry in the ledger. */
interface ThreadMember {
  /** How urgent its most urgent running request is; undefined while it has none. */
  readonly works: (urgency: Urgency | undefined) => void
  /** Threads that it uses when it works alone. */
  readonly wants: (threads: number) => void
  /** Its engine has ended; removes the entry. */
  readonly leave: () => void
}

interface Entry {
  wants: number
  urgency: Urgency | undefined
  share: number
  readonly onShare: (threads: number) => void
}

export class ThreadLedger {
  readonly machine: MachineCores
  /** Threads available to models. */
  readonly threads: number
  readonly #entries = new Map<string, Entry>()
  #lastId = 0

  constructor(machine: MachineCores) {
    this.machine = machine
    this.threads = mostThreads(machine)
  }

  /** Threads that the working models use together. */
  inUse(): number {
    let sum = 0
    for (const { share, urgency, wants } of this.#entries.values())
      if (urgency !== undefined) sum += Math.min(share, wants)
    return sum
  }

  /** `onShare` is called when the threads that it may use change; before that it may use all of them. */
  join(onShare: (threads: number) => void): ThreadMember {
    const id = String(++this.#lastId)
    const entry: Entry = { wants: this.threads, urgency: undefined, share: this.threads, onShare }
    this.#entries.set(id, entry)
    return {
      works: (urgency) => {
        if (entry.urgency === urgency) return
        entry.urgency = urgency
        this.#divide()
      },
      wants: (threads) => {
        entry.wants = threads
        if (entry.urgency !== undefined) this.#divide()
      },
      leave: () => {
        this.#entries.delete(id)
        if (entry.urgency !== undefined) this.#divide()
      },
    }
  }

  #divide(): void {
    const workers: Array<Worker> = []
    for (const [id, { urgency, wants }] of this.#entries)
      if (urgency !== undefined) workers.push({ id, urgency, wants })
    // A model that works alone may use all threads: it starts no more than it wants.
    const shares =
      workers.length === 1
        ? new Map(workers.map(({ id }) => [id, this.threads]))
        : shareThreads(workers, this.threads)
    for (const [id, share] of shares) {
      const entry = this.#entries.get(id)
      if (entry === undefined || entry.share === share) continue
      entry.share = share
      entry.onShare(share)
    }
  }
}
