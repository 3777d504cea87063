// What a connection has read comes to the parser unchanged and in its order, a slice in each turn of the event loop.
import type { Socket } from "node:net"
import { Duplex } from "node:stream"
import fc from "fast-check"
import { afterEach, describe, expect, it, vi } from "vitest"
import { sliceMs } from "#http/InSlices.ts"
import { type Arriving, SlicedReads } from "#transport/node/SlicedReads.ts"

afterEach(() => {
  vi.restoreAllMocks()
})

const turnOfLoop = () => new Promise((resolve) => setImmediate(resolve))

interface Parsed {
  readonly bytes: Buffer
  /** Turns of the event loop before it. */
  readonly turn: number
}

/** A connection whose parser takes so many milliseconds of the clock for each byte. The clock stands still otherwise. */
const connection = (
  msPerByte: number,
  arriving: Partial<Arriving> = {},
  onPart: (parsedBytes: number) => void = () => {},
  clock = { nowMs: 0 },
) => {
  vi.spyOn(performance, "now").mockImplementation(() => clock.nowMs)
  const parsed: Array<Parsed> = []
  let turn = 0
  const socket = new Duplex({ read: () => {}, write: (_bytes, _encoding, done) => done() })
  socket.on("data", (bytes: Buffer) => {
    clock.nowMs += bytes.length * msPerByte
    parsed.push({ bytes, turn })
    onPart(all().length)
  })
  const reads = new SlicedReads(socket as Socket, {
    comes: () => "in chunks",
    hasRoom: () => true,
    isHeldUp: () => false,
    ...arriving,
  })
  const turns = async (count: number) => {
    for (let at = 0; at < count; at++) {
      await turnOfLoop()
      turn++
    }
  }
  const all = () => Buffer.concat(parsed.map(({ bytes }) => bytes))
  return { socket, parsed, reads, turns, all }
}

const numbered = (bytes: number): Buffer => Buffer.from(Array.from({ length: bytes }, (_, at) => at % 251))

describe("the parser gets what was read", () => {
  it("unchanged and in its order, in parts of a slice a turn", async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 70_000 }), { minLength: 1, maxLength: 4 }),
        fc.constantFrom(0, 0.000_01, 0.000_5, 0.01),
        async (sizes, msPerByte) => {
          vi.restoreAllMocks()
          const { all, parsed, socket, turns } = connection(msPerByte)
          const whole = numbered(sizes.reduce((sum, size) => sum + size, 0))
          let from = 0
          for (const size of sizes) {
            socket.push(whole.subarray(from, from + size))
            from += size
          }
          for (let at = 0; all().length < whole.length && at < 3_000; at++) await turns(1)
          expect(all().equals(whole)).toBe(true)
          // Each turn takes a slice, and the part that began within it. The reads came in the first.
          const largest = Math.max(...parsed.map(({ bytes }) => bytes.length))
          const used = new Set(parsed.map(({ turn }) => turn)).size + 1
          const perTurnMs = sliceMs + largest * msPerByte
          expect(used).toBeGreaterThanOrEqual(Math.floor((whole.length * msPerByte) / perTurnMs))
        },
      ),
      { numRuns: 40 },
    )
  })

  it("in one turn where it is parsed quickly, in few parts", async () => {
    const { parsed, socket, turns } = connection(0.000_001)
    socket.push(numbered(65_536))
    await turns(1)
    expect(parsed.length).toBeLessThan(22)
    expect(new Set(parsed.map(({ turn }) => turn))).toEqual(new Set([0]))
  })
})

describe("connections of which much was read in one turn of the event loop", () => {
  const clock = { nowMs: 0 }
  const several = (count: number) =>
    Array.from({ length: count }, () => connection(0.000_02, {}, () => {}, clock))
  const read = (all: ReadonlyArray<ReturnType<typeof connection>>) =>
    all.reduce((sum, one) => sum + one.all().length, 0)

  it("take a part of it together, and the rest in later ones", async () => {
    const all = several(20)
    for (const { socket } of all) socket.push(numbered(65_536))
    const beganMs = clock.nowMs
    await new Promise((resolve) => process.nextTick(resolve))
    // Four milliseconds, and the slice that began within them.
    expect(clock.nowMs - beganMs).toBeLessThanOrEqual(5.1)
    for (const { turns } of all) await turns(3)
    for (let at = 0; read(all) < 20 * 65_536 && at < 100; at++) await turnOfLoop()
    for (const one of all) expect(one.all().equals(numbered(65_536))).toBe(true)
  })

  it("do not delay what is small, nor requests", async () => {
    const busy = several(5)
    const [small] = several(1)
    const requests = connection(0, { comes: () => "not" }, () => {}, clock)
    for (const { socket } of busy) socket.push(numbered(65_536))
    small?.socket.push(numbered(1_000))
    requests.socket.push(numbered(20_000))
    await new Promise((resolve) => process.nextTick(resolve))
    expect(busy.at(-1)?.all().length).toBe(0)
    expect([small?.all().length, requests.all().length]).toEqual([1_000, 20_000])
  })
})

describe("while some of it waits", () => {
  it.each(["not", "in one piece"] as const)("none of a body does that comes %s", async (comes) => {
    const { parsed, socket, turns } = connection(0.01, { comes: () => comes })
    socket.push(numbered(9_000))
    await turns(1)
    expect(parsed.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBe(9_000)
    expect(parsed.length === 1).toBe(comes === "in one piece")
    expect(socket.isPaused()).toBe(false)
  })

  it("the connection is not read, and read again behind it", async () => {
    const { parsed, socket, turns } = connection(0.01)
    socket.push(numbered(2_000))
    await turns(1)
    expect(socket.isPaused()).toBe(true)
    socket.push(numbered(10))
    expect(parsed.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBeLessThan(2_000)
    await turns(20)
    expect(socket.isPaused()).toBe(false)
    expect(parsed.reduce((sum, { bytes }) => sum + bytes.length, 0)).toBe(2_010)
  })

  it("and is not where the request has no room for more", async () => {
    let hasRoom = false
    const { all, socket, turns } = connection(0.01, { hasRoom: () => hasRoom })
    socket.push(numbered(2_000))
    await turns(20)
    expect(all().length).toBe(2_000)
    expect(socket.isPaused()).toBe(true)
    hasRoom = true
    socket.resume()
    socket.push(numbered(3_000))
    await turns(20)
    expect(all().length).toBe(5_000)
    expect(socket.isPaused()).toBe(false)
  })

  it.each([0, 0.01])(
    "none is parsed while Node waits to send responses, at %s ms a byte",
    async (msPerByte) => {
      let waits = false
      let waited = false
      const { all, socket, turns } = connection(msPerByte, { isHeldUp: () => waits }, (parsedBytes) => {
        expect(waits, "bytes for a parser that takes none").toBe(false)
        if (parsedBytes < 1_000 || waited) return
        // As Node does within a part: behind responses that a slow reader has not taken.
        waited = true
        waits = true
        socket.pause()
      })
      const whole = numbered(9_000)
      socket.push(whole)
      await turns(20)
      expect(all().length).toBeLessThan(9_000)
      expect(socket.isPaused()).toBe(true)
      waits = false
      socket.resume()
      await turns(40)
      expect(all().equals(whole)).toBe(true)
    },
  )

  it("it is read by the next protocol, where the connection changes to one", async () => {
    const { all, reads, socket, turns } = connection(0.01)
    const whole = numbered(9_000)
    socket.push(whole)
    await turns(2)
    const before = all().length
    expect(before).toBeGreaterThan(0)
    expect(before).toBeLessThan(9_000)
    reads.end()
    const next: Array<Buffer> = []
    socket.on("data", (bytes: Buffer) => next.push(bytes))
    socket.resume()
    await turns(5)
    expect(all().length).toBe(before)
    expect(Buffer.concat(next).equals(whole.subarray(before))).toBe(true)
  })

  it("is dropped with the connection", async () => {
    const { all, socket, turns } = connection(0.01)
    socket.push(numbered(9_000))
    await turns(1)
    socket.destroy()
    await turns(2)
    const before = all().length
    await turns(20)
    expect(all().length).toBe(before)
  })
})
