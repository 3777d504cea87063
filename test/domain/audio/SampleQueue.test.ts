// What comes out of a queue of samples is what went in, whatever the pieces were, with silence behind it.
import fc from "fast-check"
import { expect, it } from "vitest"
import { SampleQueue } from "#domain/audio/SampleQueue.ts"

it("gives the samples in their order, and silence where fewer wait", () => {
  fc.assert(
    fc.property(fc.array(fc.int16Array({ maxLength: 20 })), fc.array(fc.nat(30)), (pieces, counts) => {
      const queue = new SampleQueue()
      for (const piece of pieces) queue.push(piece)
      const left = pieces.flatMap((piece) => [...piece])
      for (const count of counts) {
        const wanted = left.splice(0, count)
        const silence = Array.from({ length: count - wanted.length }, () => 0)
        expect([...queue.take(count)]).toEqual([...wanted, ...silence])
        expect(queue.length).toBe(left.length)
      }
      queue.clear()
      expect([queue.length, ...queue.take(2)]).toEqual([0, 0, 0])
    }),
  )
})
