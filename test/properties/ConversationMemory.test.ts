// The memory that conversations count against a model of sums: for any order of items that come, change, are read and go, of
// several conversations of several users, what is counted is what is held, and nothing is when they have ended.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { History } from "#domain/conversation/History.ts"
import { type Item, itemOf } from "#domain/conversation/Items.ts"
import { type Holding, MemoryBudget } from "#domain/queues/MemoryBudget.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import { memoryOf } from "#domain/wire/Json.ts"

const item = (id: number, length: number): Item =>
  itemOf(
    {
      type: "function_call_output",
      id: `item_${id}`,
      call_id: "c".repeat(length % 256),
      output: "x".repeat(length),
    },
    () => "new",
  )

const step = fc.record({
  do: fc.constantFrom(
    "add",
    "add",
    "own",
    "replace",
    "delete",
    "read",
    "readEnds",
    "take",
    "giveBack",
    "end",
  ),
  in: fc.nat(3),
  id: fc.nat(8),
  length: fc.nat(20_000),
})

/** What one conversation holds, as the rules say it. */
class Model {
  readonly user: string
  readonly history: History
  readonly holding: Holding
  readonly live = new Map<number, number>()
  /** Bytes of what is gone, with the readers that had begun before and have not ended. */
  readonly gone: Array<{ readonly bytes: number; readonly readers: Set<object> }> = []
  readonly readers = new Map<object, () => void>()
  besides = 0
  hasEnded = false

  constructor(budget: MemoryBudget, user: string) {
    this.user = user
    this.holding = budget.open(user)
    this.history = new History(this.holding)
  }

  drop(bytes: number): void {
    if (this.readers.size > 0) this.gone.push({ bytes, readers: new Set(this.readers.keys()) })
  }

  get bytes(): number {
    if (this.hasEnded) return 0
    const live = [...this.live.values()].reduce((sum, bytes) => sum + bytes, 0)
    const gone = this.gone
      .filter(({ readers }) => [...readers].some((reader) => this.readers.has(reader)))
      .reduce((sum, { bytes }) => sum + bytes, 0)
    return live + gone + this.besides
  }
}

describe("the memory of conversations", () => {
  it("is what they hold, never more than the budget for what clients add, and nothing at the end", () => {
    fc.assert(
      fc.property(fc.array(step, { maxLength: 120, size: "max" }), (steps) => {
        const limits = { node: 200_000, user: 90_000 }
        const budget = new MemoryBudget(limits)
        const models = ["a", "a", "b", "c"].map((user) => new Model(budget, user))
        for (const { id, in: at, length, ...rest } of steps) {
          const model = models[at]!
          const { history, holding } = model
          if (model.hasEnded) continue
          const [held, own] = [budget.held, budget.heldBy(model.user)]
          switch (rest.do) {
            case "add":
            case "own": {
              const added = item(id, length)
              const bytes = memoryOf(added)
              const refused =
                history.add(added, rest.do === "add" ? "client" : "own") instanceof InvalidRequest
              const fits = own + bytes <= Math.floor(Math.min(limits.user, (limits.node - held) / 2))
              expect(refused).toBe(model.live.has(id) || (rest.do === "add" && !fits))
              if (!refused) model.live.set(id, bytes)
              if (rest.do === "add" && !refused) expect(budget.held).toBeLessThanOrEqual(limits.node)
              break
            }
            case "replace": {
              history.replace(item(id, length))
              const before = model.live.get(id)
              if (before === undefined) break
              model.drop(before)
              model.live.set(id, memoryOf(item(id, length)))
              break
            }
            case "delete": {
              expect(history.delete(`item_${id}`)).toBe(model.live.has(id))
              const before = model.live.get(id)
              model.live.delete(id)
              if (before !== undefined) model.drop(before)
              break
            }
            case "read":
              model.readers.set({}, history.read())
              break
            case "readEnds": {
              const reader = [...model.readers.keys()][id % Math.max(1, model.readers.size)]
              if (reader === undefined) break
              const ended = model.readers.get(reader)!
              model.readers.delete(reader)
              ended()
              // Once only.
              ended()
              break
            }
            case "take":
              if (holding.take(length)) model.besides += length
              break
            case "giveBack": {
              const bytes = Math.min(length, model.besides)
              holding.giveBack(bytes)
              model.besides -= bytes
              break
            }
            case "end":
              holding.end()
              model.hasEnded = true
          }
          expect(budget.held).toBe(models.reduce((sum, { bytes }) => sum + bytes, 0))
          for (const user of ["a", "b", "c"]) {
            const of = models.filter((one) => one.user === user)
            expect(budget.heldBy(user)).toBe(of.reduce((sum, { bytes }) => sum + bytes, 0))
          }
        }
        for (const { holding } of models) holding.end()
        expect([budget.held, budget.heldBy("a")]).toEqual([0, 0])
      }),
      { numRuns: 300 },
    )
  })

  it("leaves two thirds of what was free where a user takes all that is allowed", () => {
    fc.assert(
      fc.property(fc.integer({ min: 1, max: 8 }), fc.integer({ min: 1, max: 1_000 }), (users, bytes) => {
        const budget = new MemoryBudget({ node: 1_000_000, user: 1_000_000 })
        for (let user = 0; user < users; user++) while (budget.take(`user ${user}`, bytes));
        // A piece that just fits takes a third of itself too much.
        expect(budget.held).toBeLessThanOrEqual(1_000_000 * (1 - (2 / 3) ** users) + users * bytes)
        expect(budget.take("new", budget.limit)).toBe(true)
        expect(budget.take("newer", budget.limit + 1)).toBe(false)
      }),
      { numRuns: 50 },
    )
  })
})

describe("memoryOf", () => {
  const value = fc.jsonValue({ maxDepth: 4 })

  it("is at least the characters of a value's texts, and grows with what is added", () => {
    fc.assert(
      fc.property(value, value, (one, other) => {
        expect(memoryOf([one, other])).toBe(64 + memoryOf(one) + memoryOf(other))
        expect(memoryOf(one)).toBeGreaterThanOrEqual(JSON.stringify(one).length / 12)
      }),
    )
  })

  it("counts texts beyond ASCII twice, and stops soon after the most", () => {
    expect(memoryOf("a".repeat(100))).toBe(164)
    expect(memoryOf("ö".repeat(100))).toBe(264)
    const many = Array.from({ length: 1_000 }, () => "x".repeat(1_000))
    expect(memoryOf(many)).toBe(64 + 1_000 * 1_064)
    expect(memoryOf(many, 5_000)).toBeLessThan(7_000)
  })
})
