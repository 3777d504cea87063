// Sending large bodies: bounded at each event loop tick, fair among those that wait, and none is left out.
import fc from "fast-check"
import { expect, it } from "vitest"
import { type FairSender, FairSendQueue, pieceBytes } from "#transport/FairSendQueue.ts"

/** Pieces that may be sent in one event loop tick. */
const piecesATurn = 8

/** A body of that many pieces, whose reader takes `atOnce` of them before it makes the sender wait for a while. */
class Body implements FairSender {
  readonly pieces: number
  given = 0
  readonly #replies: FairSendQueue
  readonly #atOnce: number
  readonly #log: Array<Body>

  constructor(replies: FairSendQueue, pieces: number, atOnce: number, log: Array<Body>) {
    this.#replies = replies
    this.pieces = pieces
    this.#atOnce = atOnce
    this.#log = log
  }

  readonly proceed = (): void => {
    let taken = 0
    while (this.given < this.pieces && this.#replies.maySend(this)) {
      this.given++
      this.#log.push(this)
      if (++taken < this.#atOnce) continue
      setImmediate(this.proceed)
      return
    }
  }
}

const bodies = fc.array(
  fc.record({ pieces: fc.integer({ min: 1, max: 60 }), atOnce: fc.integer({ min: 1, max: 20 }) }),
  {
    minLength: 1,
    maxLength: 40,
  },
)

const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

it("a piece is a part of a tick's share", () => expect(pieceBytes * piecesATurn).toBe(512 * 1024))

it("hands over a bounded part in each tick, all of it in the end", () =>
  fc.assert(
    fc.asyncProperty(bodies, async (shapes) => {
      const replies = new FairSendQueue()
      const log: Array<Body> = []
      const all = shapes.map(({ atOnce, pieces }) => new Body(replies, pieces, atOnce, log))
      for (const body of all) body.proceed()
      for (let turns = 0; all.some(({ given, pieces }) => given < pieces); turns++) {
        expect(turns).toBeLessThan(5_000)
        const before = log.length
        await turn()
        // This test's own tick ends within one of theirs, so it may see the end of one and the beginning of the next.
        expect(log.length - before).toBeLessThanOrEqual(2 * piecesATurn)
      }
      expect(log.length).toBe(shapes.reduce((sum, { pieces }) => sum + pieces, 0))
    }),
    { numRuns: 60 },
  ))

it("serves waiting bodies round robin", async () => {
  const replies = new FairSendQueue()
  const log: Array<Body> = []
  const all = Array.from({ length: 50 }, () => new Body(replies, 20, Number.POSITIVE_INFINITY, log))
  for (const body of all) body.proceed()
  while (log.length < 500) await turn()
  const given = all.map((body) => body.given)
  // The first one had the first tick for itself.
  expect(given[0]).toBeGreaterThanOrEqual(piecesATurn)
  expect(Math.max(...given.slice(1)) - Math.min(...given.slice(1))).toBeLessThanOrEqual(1)
})

it("removes bodies that were closed", async () => {
  const replies = new FairSendQueue()
  const log: Array<Body> = []
  const [first, second] = [new Body(replies, 20, 99, log), new Body(replies, 20, 99, log)]
  first.proceed()
  second.proceed()
  replies.leave(second)
  for (let i = 0; i < 10; i++) await turn()
  expect([first.given, second.given]).toEqual([20, 0])
})
