// Pieces that wait in shared blocks come back as they were, and a block is free when its last piece is taken.
import fc from "fast-check"
import { expect, it } from "vitest"
import { blockBytes, type KeptPiece, KeptPieces } from "#domain/queues/KeptPieces.ts"

const bytesOf = (piece: KeptPiece) => piece.take((bytes) => [bytes.slice(), bytes] as const)

it("pieces are as they were, in any order of keeping and taking", () => {
  const piece = fc.record({ size: fc.nat(40_000), first: fc.nat(255) })
  fc.assert(
    fc.property(fc.array(fc.option(piece), { maxLength: 60 }), (steps) => {
      const kept = new KeptPieces()
      const waiting: Array<readonly [KeptPiece, Uint8Array]> = []
      const takes = () => {
        const [oldest] = waiting.splice(0, 1)
        if (oldest !== undefined) expect(Buffer.compare(bytesOf(oldest[0])[0], oldest[1])).toBe(0)
      }
      for (const step of steps) {
        if (step === null) takes()
        else {
          const given = Uint8Array.from({ length: step.size }, (_, at) => step.first + at)
          waiting.push([kept.keep(given), given.slice()])
          // The transport uses this memory again.
          given.fill(0)
        }
      }
      while (waiting.length > 0) takes()
    }),
    { numRuns: 50 },
  )
})

it("share blocks, each of which is free as soon as its last piece is taken, and not before", () => {
  const kept = new KeptPieces()
  const count = 3 * 16
  const pieces = Array.from({ length: count }, (_, at) => kept.keep(new Uint8Array(blockBytes / 16).fill(at)))
  const views = pieces.map((piece) => bytesOf(piece)[1])
  // Every piece of a block is empty once the block is free.
  expect(views.map(({ byteLength }) => byteLength)).toEqual(views.map(() => 0))
  const [first, second] = [kept.keep(new Uint8Array(8).fill(1)), kept.keep(new Uint8Array(8).fill(2))]
  const [, taken] = bytesOf(first)
  expect(taken.byteLength).toBe(8)
  const [bytes, last] = bytesOf(second)
  expect([...bytes]).toEqual([2, 2, 2, 2, 2, 2, 2, 2])
  expect([taken.byteLength, last.byteLength]).toEqual([0, 0])
})
