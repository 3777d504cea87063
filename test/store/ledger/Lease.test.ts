// The arithmetic of leases over several nodes in any order of events: batches that wait, are written, or whose answers are lost,
// calls that arrive late or never, nodes that die and start again. The database is a model of what LeaseRows does in SQL
// (Leases.postgres.test.ts compares them).
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { release } from "#store/ledger/Balance.ts"
import {
  type Demand,
  decide,
  demandOf,
  hasMoney,
  idleMs,
  type Lease,
  type LeaseAnswer,
  type LeaseEvent,
  newLease,
  spare,
  tryLease,
} from "#store/ledger/Lease.ts"

/** Cheaper than `expect`, which a property of many steps calls too often. */
const must = (isTrue: boolean, what: string): void => {
  if (!isTrue) throw new Error(`not so: ${what}`)
}

interface Receipt {
  readonly id: number
  readonly microDollars: number
}

interface Batch {
  readonly receipts: ReadonlyArray<Receipt>
  readonly demand: Demand | undefined
  answer: LeaseAnswer | undefined
}

class World {
  credits: number
  readonly initial: number
  readonly leases: Array<number>
  readonly written = new Set<number>()
  spent = 0
  nowMs = 0
  nextId = 1
  readonly nodes: Array<Node>

  constructor(credits: number, nodes: number) {
    this.initial = credits
    this.credits = credits
    this.leases = Array.from({ length: nodes }, () => 0)
    this.nodes = this.leases.map((_, at) => new Node(this, at))
  }

  get leased(): number {
    return this.leases.reduce((sum, lease) => sum + lease, 0)
  }

  commit(node: number, { demand, receipts }: Batch): LeaseAnswer {
    let charge = 0
    for (const { id, microDollars } of receipts) {
      if (this.written.has(id)) continue
      this.written.add(id)
      charge += microDollars
    }
    const had = this.leases[node]!
    const rest = Math.min(Math.max(0, had - charge), demand?.keep ?? had)
    this.credits -= charge
    this.spent += charge
    const free = Math.max(0, this.credits - (this.leased - had + rest))
    const want = demand?.want
    const slice = Math.floor(free / (4 * this.leases.length))
    const lease = rest + (want === undefined ? 0 : Math.min(free, Math.max(want, slice)))
    this.leases[node] = lease
    return { credits: this.credits, paymentMethod: false, lease, leasedElsewhere: this.leased - lease }
  }

  check(): void {
    must(this.credits >= this.leased, "the balance covers the leases")
    must(Math.min(this.credits, ...this.leases) >= 0, "nothing is below zero")
    must(this.credits + this.spent === this.initial, "what is spent is charged")
    for (const node of this.nodes) node.check()
  }
}

class Node {
  lease: Lease = newLease("org")
  readonly #world: World
  readonly #at: number
  unflushed: Array<Receipt> = []
  batch: Batch | undefined
  held: Array<number> = []
  readonly waiting = new Map<number, number>()
  isExchangeDue = false
  isResting = false
  isCalled = false
  ends = { admit: 0, refuse: 0, fail: 0 }

  constructor(world: World, at: number) {
    this.#world = world
    this.#at = at
  }

  happened(event: LeaseEvent): void {
    for (const command of decide(this.lease, event, this.#world.nowMs)) {
      switch (command.type) {
        case "admit":
        case "refuse":
        case "fail": {
          const amount = this.waiting.get(command.id)
          must(amount !== undefined, "it was waiting")
          this.waiting.delete(command.id)
          this.ends[command.type]++
          if (command.type === "admit") this.held.push(amount!)
          break
        }
        case "exchange":
          this.isExchangeDue = true
          break
        case "call":
          for (const other of this.#world.nodes) if (other !== this) other.isCalled = true
          break
        case "pause":
          this.isResting = true
      }
    }
  }

  reserve(microDollars: number): void {
    if (tryLease(this.lease, microDollars, this.#world.nowMs)) {
      this.held.push(microDollars)
      return
    }
    const id = this.#world.nextId++
    this.waiting.set(id, microDollars)
    this.happened({ type: "wanted", id, microDollars })
  }

  /** Ends the oldest reservation; a part of it is charged. */
  settle(part: number): void {
    const microDollars = this.held.shift()
    if (microDollars === undefined) return
    const charge = Math.floor(microDollars * part)
    release(this.lease, microDollars)
    this.lease.unflushed += charge
    if (charge > 0) this.unflushed.push({ id: this.#world.nextId++, microDollars: charge })
    this.happened({ type: "released" })
  }

  /** The three steps of a batch. */
  send(): void {
    if (this.batch !== undefined || (this.unflushed.length === 0 && !this.isExchangeDue)) return
    const receipts = this.unflushed
    this.unflushed = []
    this.isExchangeDue = false
    const charged = receipts.reduce((sum, { microDollars }) => sum + microDollars, 0)
    this.batch = { receipts, demand: demandOf(this.lease, charged, this.#world.nowMs), answer: undefined }
  }
  commit(): void {
    if (this.batch !== undefined && this.batch.answer === undefined) {
      this.batch.answer = this.#world.commit(this.#at, this.batch)
    }
  }
  end(isLost: boolean): void {
    const { batch } = this
    if (batch === undefined) return
    const { answer, demand, receipts } = batch
    this.batch = undefined
    const asked = demand?.want !== undefined
    if (answer === undefined || isLost) {
      this.unflushed = [...receipts, ...this.unflushed]
      if (demand !== undefined) this.happened({ type: "failed" })
      return
    }
    const charged = receipts.reduce((sum, { microDollars }) => sum + microDollars, 0)
    this.happened({ type: "answered", asked, charged, row: answer })
  }

  rest(): void {
    if (!this.isResting) return
    this.isResting = false
    this.happened({ type: "rested" })
  }
  hear(): void {
    if (!this.isCalled) return
    this.isCalled = false
    this.happened({ type: "called" })
  }
  tick(): void {
    if (hasMoney(this.lease)) this.happened({ type: "tick" })
  }

  /** Killed, and started again: what it had in memory is gone, its leases end. */
  restart(): void {
    this.lease = newLease("org")
    this.unflushed = []
    this.batch = undefined
    this.held = []
    this.waiting.clear()
    this.isExchangeDue = false
    this.isResting = false
    this.isCalled = false
    this.#world.leases[this.#at] = 0
  }

  /** It never believes to have more than the database has given it. */
  check(): void {
    const pending = [...this.unflushed, ...(this.batch?.receipts ?? [])]
    const known = pending.filter(({ id }) => this.#world.written.has(id))
    const charged = known.reduce((sum, { microDollars }) => sum + microDollars, 0)
    must(this.lease.credits - charged <= this.#world.leases[this.#at]!, "a node has what it thinks it has")
    const held = this.held.reduce((sum, amount) => sum + amount, 0)
    must(this.lease.reserved === held, "what is held is reserved")
    must(this.lease.waiting.length === this.waiting.size, "each that waits is known")
  }
}

const nodeCount = 3
const node = fc.nat(nodeCount - 1)
const step = fc.oneof(
  { weight: 6, arbitrary: fc.record({ do: fc.constant("reserve" as const), node, amount: fc.nat(60) }) },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      node,
      part: fc.constantFrom(0, 0.3, 1),
    }),
  },
  { weight: 5, arbitrary: fc.record({ do: fc.constantFrom("send", "commit", "rest", "hear"), node }) },
  { weight: 5, arbitrary: fc.record({ do: fc.constant("end" as const), node, isLost: fc.boolean() }) },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(5, 300, 2_500) }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("restart" as const), node }) },
)

/** Lets everything that is due happen, without a loss. */
const settleDown = (world: World): void => {
  for (let round = 0; round < 50; round++) {
    world.nowMs += idleMs / 4
    for (const one of world.nodes) {
      one.hear()
      one.rest()
      one.tick()
      one.send()
      one.commit()
      one.end(false)
      world.check()
    }
  }
}

describe("leases of a prepaid balance", () => {
  it("never hold more than the balance, spend nothing twice, and all come back", () => {
    fc.assert(
      fc.property(fc.nat(400), fc.array(step, { maxLength: 120 }), (credits, steps) => {
        const world = new World(credits, nodeCount)
        for (const one of steps) {
          if (one.do === "wait") {
            world.nowMs += one.ms
            for (const some of world.nodes) some.tick()
          } else {
            const on = world.nodes[one.node]!
            if (one.do === "reserve") on.reserve(one.amount)
            else if (one.do === "settle") on.settle(one.part)
            else if (one.do === "end") on.end(one.isLost)
            else on[one.do as "send" | "commit" | "rest" | "hear" | "restart"]()
          }
          world.check()
        }
        settleDown(world)
        for (const one of world.nodes) {
          expect(one.waiting.size).toBe(0)
          while (one.held.length > 0) one.settle(1)
        }
        settleDown(world)
        expect(world.leases).toEqual(world.leases.map(() => 0))
        // The rest of the balance can be spent to the last micro-dollar, at any node.
        const last = world.nodes[0]!
        const left = world.credits
        if (left > 0) {
          last.reserve(left)
          settleDown(world)
          expect(last.held).toEqual([left])
        }
        last.reserve(1)
        settleDown(world)
        expect(last.held).toEqual(left > 0 ? [left] : [])
      }),
      { numRuns: 300 },
    )
  })

  it("gives back what the database has leased in an answer that was lost", () => {
    for (const amount of [0, 30]) {
      const world = new World(100, 2)
      const [one, two] = world.nodes as [Node, Node]
      one.reserve(amount)
      one.send()
      one.commit()
      one.end(true)
      expect([one.ends.fail, world.leased > 0]).toEqual([1, true])
      // The node gets no more requests of the organization, and the other one needs all.
      two.reserve(100)
      settleDown(world)
      expect([two.held, world.leases]).toEqual([[100], [0, 100]])
    }
  })

  it("gives back what it could not give back before", () => {
    const world = new World(100, 2)
    const [one] = world.nodes as [Node]
    one.reserve(10)
    one.send()
    one.commit()
    one.end(false)
    one.settle(0)
    world.nowMs += idleMs
    one.tick()
    one.send()
    // The batch is never written.
    one.end(true)
    expect(world.leased).toBeGreaterThan(0)
    settleDown(world)
    expect(world.leased).toBe(0)
  })

  it("asks again for those that come while it asks, as long as money is free", () => {
    const world = new World(1_000, 1)
    const [one] = world.nodes as [Node]
    one.reserve(30)
    one.send()
    for (let more = 0; more < 99; more++) one.reserve(30)
    settleDown(world)
    expect([one.held.length, one.ends.refuse, one.waiting.size]).toEqual([33, 67, 0])
  })

  it("refuses at once where no other node holds anything, and calls the others where one does", () => {
    const world = new World(100, 2)
    const [one, two] = world.nodes as [Node, Node]
    one.reserve(60)
    one.send()
    one.commit()
    one.end(false)
    expect(one.held).toEqual([60])
    // The rest is free, and not enough.
    two.reserve(50)
    two.send()
    two.commit()
    two.end(false)
    expect([two.held, two.isResting, one.isCalled]).toEqual([[], true, true])
    // The other has nothing to spare until its request ends.
    one.hear()
    expect(one.isExchangeDue).toBe(false)
    one.settle(0.5)
    one.send()
    one.commit()
    one.end(false)
    expect(spare(one.lease)).toBe(0)
    two.rest()
    two.send()
    two.commit()
    two.end(false)
    expect(two.held).toEqual([50])
    two.reserve(40)
    two.send()
    two.commit()
    two.end(false)
    expect([two.held, two.ends.refuse]).toEqual([[50], 1])
  })
})
