// Who is dead is judged by counters that stand still while this node's own statements succeed, and by nothing else.
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { deadAfter, isDead, type Neighbour, type NodeRow, noOffer, observe } from "#store/nodes/Neighbours.ts"

const row = (id: string, beat: number, seen_at_ms = 0): NodeRow => ({ id, beat, seen_at_ms, offer: "" })

/** What a node knows after statements that read these rows, one a second. */
const knownAfter = (reads: ReadonlyArray<ReadonlyArray<NodeRow>>) =>
  reads.reduce<ReadonlyMap<string, Neighbour>>(
    (known, rows, second) => observe(known, rows, "self", second * 1000),
    new Map(),
  )

const deadIn = (known: ReadonlyMap<string, Neighbour>) =>
  [...known.values()].filter(isDead).map(({ id }) => id)

describe("a neighbour", () => {
  it("is dead when its counter has stood still over five reads, and not before", () => {
    const still = (reads: number) => knownAfter(Array.from({ length: reads }, () => [row("b", 7)]))
    // The first read only learns the counter.
    expect(deadIn(still(deadAfter))).toEqual([])
    expect(deadIn(still(deadAfter + 1))).toEqual(["b"])
    expect(still(deadAfter + 1).get("b")).toMatchObject({ beat: 7, sinceMs: 0 })
  })

  it("lives again with any other counter, a lower one too: a database may have been restored", () => {
    const dead = Array.from({ length: 9 }, () => [row("b", 7)])
    expect(deadIn(knownAfter([...dead, [row("b", 8)]]))).toEqual([])
    expect(deadIn(knownAfter([...dead, [row("b", 2)]]))).toEqual([])
  })

  it("of an earlier version, which has no counter, is judged by whether its time changes", () => {
    const reads = (times: ReadonlyArray<number>) => knownAfter(times.map((time) => [row("old", 0, time)]))
    expect(deadIn(reads([1, 2, 3, 4, 5, 6, 7]))).toEqual([])
    expect(deadIn(reads([9, 9, 9, 9, 9, 9, 9]))).toEqual(["old"])
  })

  it("with a counter is judged by that alone: its time may jump with the database's clock", () => {
    expect(deadIn(knownAfter([1, 2, 3, 4, 5, 6].map((time) => [row("b", 7, time)])))).toEqual(["b"])
  })

  it("is forgotten with its row, and this node is none", () => {
    expect([...knownAfter([[row("b", 1), row("self", 1)], [row("self", 2)]]).keys()]).toEqual([])
  })

  it("whose offer cannot be read offers nothing", () => {
    expect(knownAfter([[{ ...row("b", 1), offer: "{oops" }]]).get("b")?.offer).toEqual(noOffer)
  })

  it("is never dead while it beats at least once in five reads, whenever the reads are", () => {
    fc.assert(
      fc.property(fc.array(fc.nat(4), { minLength: 1, maxLength: 60 }), (pauses) => {
        // Between two beats of the neighbour there are one to five reads.
        const reads = pauses.flatMap((extra, beat) =>
          Array.from({ length: extra + 1 }, () => [row("b", beat + 1)]),
        )
        let known: ReadonlyMap<string, Neighbour> = new Map()
        for (const [second, rows] of reads.entries()) {
          known = observe(known, rows, "self", second * 1000)
          expect(deadIn(known)).toEqual([])
        }
      }),
    )
  })
})
