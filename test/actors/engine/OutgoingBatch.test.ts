import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { OutgoingBatch } from "#actors/engine/OutgoingBatch.ts"

const nextTick = () => new Promise((resolve) => setImmediate(resolve))

describe("OutgoingBatch", () => {
  it("sends the messages of one tick as one list, once", async () => {
    const lists: Array<ReadonlyArray<number>> = []
    const batch = new OutgoingBatch<number>((messages) => lists.push(messages))
    batch.send(1)
    batch.send(2)
    expect(lists).toEqual([])
    await nextTick()
    expect(lists).toEqual([[1, 2]])
    batch.send(3)
    await nextTick()
    await nextTick()
    expect(lists).toEqual([[1, 2], [3]])
  })

  it("keeps the order, loses no message and bounds a list, whatever is sent in each tick", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 0, max: 200 }), { minLength: 1, maxLength: 6 }),
        async (ticks) => {
          const lists: Array<ReadonlyArray<number>> = []
          const batch = new OutgoingBatch<number>((messages) => lists.push(messages))
          let sent = 0
          for (const count of ticks) {
            for (let each = 0; each < count; each++) batch.send(sent++)
            await nextTick()
            expect(lists.flat()).toEqual(Array.from({ length: sent }, (_, at) => at))
          }
          expect(lists.every(({ length }) => length > 0 && length <= 64)).toBe(true)
        },
      ),
      { numRuns: 50 },
    )
  })
})
