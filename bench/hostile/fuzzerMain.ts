// The attacker of the fuzz run, a process of its own at the lowest priority: makes the inputs of a range of indexes, sends them at
// a pace and counts what becomes of them.
import { setPriority } from "node:os"
import { serveCommands } from "../support/CommandChannel.ts"
import type { Target } from "../support/Connection.ts"
import { Deliveries, type Outcome } from "./Delivery.ts"
import { decodes, type Input, inputOf, type Kind } from "./Inputs.ts"
import { withKey } from "./Placeholder.ts"

const lowestPriority = 19
setPriority(lowestPriority)

interface FuzzOrder {
  readonly target: Target
  readonly seed: number
  /** First index, and the one behind the last. */
  readonly from: number
  readonly to: number
  readonly perSecond: number
}

/** An answer that no input should get. */
interface Wrong {
  readonly index: number
  readonly outcome: Outcome
}

export interface Progress {
  readonly done: number
  readonly finished: boolean
  /** Count of inputs by kind and outcome. */
  readonly tally: ReadonlyArray<{ readonly kind: Kind; readonly outcome: Outcome; readonly count: number }>
  readonly wrong: ReadonlyArray<Wrong>
  /** Inputs without an outcome yet, and the last ones that were sent: where to look when the node ends. */
  readonly recent: ReadonlyArray<number>
}

/** Connections of the inputs that transport and handlers see, and of those that decoders see. */
const wires = 96
const decoders = 6
const paceMs = 5
const keptWrong = 100
const keptRecent = 400
const keptOutcomes = 500

/**
 * A defect is answered with 500, and a request with right framing is always answered by its handler. 505 is the native
 * parser's: it refuses requests that are cut between two reads in the version of their first line (docs/security.md).
 */
const isWrong = (outcome: Outcome, { framed, pieces }: Input): boolean =>
  ["500", "not HTTP", "no answer"].includes(outcome) || (framed && outcome === "505" && pieces === 1)

const sent = (order: FuzzOrder, index: number): Input => {
  const input = inputOf(order.seed, index)
  const { key } = order.target
  const frames = input.frames === undefined ? {} : { frames: withKey(input.frames, key) }
  return { ...input, ...frames, bytes: withKey(input.bytes, key) }
}

class Fuzzer {
  readonly #order: FuzzOrder
  readonly #deliveries: Deliveries
  readonly #startedMs = performance.now()
  readonly #timer: NodeJS.Timeout
  readonly #tally = new Map<string, { kind: Kind; outcome: Outcome; count: number }>()
  readonly #wrong: Array<Wrong> = []
  readonly #recent: Array<number> = []
  readonly #lanes: ReadonlyArray<{
    readonly decoding: boolean
    readonly most: number
    next: number
    busy: number
  }>
  #done = 0
  #stopped = false

  constructor(order: FuzzOrder) {
    this.#order = order
    this.#deliveries = new Deliveries(order.target.port)
    this.#lanes = [
      { decoding: false, most: wires, next: order.from, busy: 0 },
      { decoding: true, most: decoders, next: order.from, busy: 0 },
    ]
    this.#timer = setInterval(() => this.#sendDue(), paceMs)
  }

  #sendDue(): void {
    const { from, perSecond, to } = this.#order
    const due = Math.min(to, from + Math.ceil(((performance.now() - this.#startedMs) * perSecond) / 1000))
    for (const lane of this.#lanes) {
      while (lane.next < due && lane.busy < lane.most && !this.#stopped) {
        const index = lane.next++
        if (decodes(index) !== lane.decoding) continue
        lane.busy++
        this.#remember(index)
        const input = sent(this.#order, index)
        void this.#deliveries.deliver(input).then((outcome) => {
          lane.busy--
          this.#count(index, input, outcome)
        })
      }
    }
  }

  #remember(index: number): void {
    this.#recent.push(index)
    if (this.#recent.length > keptRecent) this.#recent.shift()
  }

  #count(index: number, input: Input, outcome: Outcome): void {
    const { kind } = input
    this.#done++
    const name = `${kind} ${outcome}`
    const counted = this.#tally.get(name)
    if (counted !== undefined) counted.count++
    else if (this.#tally.size < keptOutcomes) this.#tally.set(name, { kind, outcome, count: 1 })
    if (isWrong(outcome, input) && this.#wrong.length < keptWrong) this.#wrong.push({ index, outcome })
  }

  get progress(): Progress {
    const { from, to } = this.#order
    return {
      done: this.#done,
      finished: this.#done === to - from,
      tally: [...this.#tally.values()],
      wrong: this.#wrong,
      recent: this.#recent,
    }
  }

  stop(): void {
    this.#stopped = true
    clearInterval(this.#timer)
    this.#deliveries.close()
  }
}

let fuzzer: Fuzzer | undefined

const commands = {
  start: (order: FuzzOrder): void => {
    fuzzer?.stop()
    fuzzer = new Fuzzer(order)
  },
  progress: (): Progress | undefined => fuzzer?.progress,
  stop: (): void => fuzzer?.stop(),
}

export type FuzzerCommands = typeof commands

serveCommands(commands)
