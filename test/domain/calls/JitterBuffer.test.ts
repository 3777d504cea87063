// The packets of a caller in their order: whatever the network does, what comes out lasts as long as the timestamps say, in order, and no packet
// waits longer than it may.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { type Heard, JitterBuffer, jitterWaitMs } from "#domain/calls/JitterBuffer.ts"

/** A packet of 20 ms with its number in it. */
const packetOf = (number: number) => ({
  sequence: (65_530 + number) & 0xffff,
  timestamp: (2 ** 32 - 2_000 + number * 960) >>> 0,
  payload: new Uint8Array([0xf8, number >> 8, number & 0xff]),
})
const numberOf = (heard: Heard): number | undefined =>
  heard.is === "packet" ? (heard.payload[1]! << 8) | heard.payload[2]! : undefined

const samplesOf = (heard: Heard): number => (heard.is === "packet" ? 960 : heard.samples)

describe("in order", () => {
  it("packets pass at once", () => {
    const buffer = new JitterBuffer()
    for (let number = 0; number < 20; number++) {
      buffer.push(packetOf(number), number * 20)
      expect(buffer.take(number * 20).map(numberOf)).toEqual([number])
      expect(buffer.leftMs(number * 20)).toBeUndefined()
    }
  })
})

describe("out of order", () => {
  it("one that comes a little later is waited for", () => {
    const buffer = new JitterBuffer()
    buffer.push(packetOf(0), 0)
    buffer.take(0)
    buffer.push(packetOf(2), 20)
    expect(buffer.take(20)).toEqual([])
    buffer.push(packetOf(1), 30)
    expect(buffer.take(30).map(numberOf)).toEqual([1, 2])
  })

  it("one that does not come is a gap, after the time that it may take", () => {
    const buffer = new JitterBuffer()
    buffer.push(packetOf(0), 0)
    buffer.take(0)
    buffer.push(packetOf(3), 20)
    const left = Math.ceil(buffer.leftMs(20)!)
    expect(left).toBeLessThanOrEqual(jitterWaitMs.most)
    expect(buffer.take(20 + left - 1)).toEqual([])
    const heard = buffer.take(20 + left)
    expect(heard[0]).toEqual({ is: "gap", samples: 2 * 960, isLoss: true })
    expect(heard.slice(1).map(numberOf)).toEqual([3])
    expect(buffer.lost).toBe(2)
  })

  it("waits longer after packets that were late, and never longer than the most", () => {
    const buffer = new JitterBuffer()
    buffer.push(packetOf(0), 0)
    buffer.take(0)
    let nowMs = 0
    let most = 0
    for (let number = 1; number < 200; number += 2) {
      nowMs += 40
      buffer.push(packetOf(number + 1), nowMs)
      const left = buffer.leftMs(nowMs) ?? 0
      most = Math.max(most, left)
      nowMs += Math.ceil(left)
      buffer.take(nowMs)
      nowMs += 10
      buffer.push(packetOf(number), nowMs)
      buffer.take(nowMs)
    }
    expect(most).toBeGreaterThan(jitterWaitMs.first)
    expect(most).toBeLessThanOrEqual(jitterWaitMs.most)
  })

  it("a sender that was silent without packets has a gap that is no loss", () => {
    const buffer = new JitterBuffer()
    buffer.push(packetOf(0), 0)
    buffer.take(0)
    const { payload, timestamp } = packetOf(10)
    buffer.push({ sequence: packetOf(1).sequence, timestamp, payload }, 200)
    expect(buffer.take(200)[0]).toEqual({ is: "gap", samples: 9 * 960, isLoss: false })
    expect(buffer.lost).toBe(0)
  })
})

it("packets that are replayed, strange or far away do no harm", () => {
  fc.assert(
    fc.property(
      fc.array(
        fc.record({
          sequence: fc.integer({ min: 0, max: 0xffff }),
          timestamp: fc.integer({ min: 0, max: 0xffff_ffff }),
          payload: fc.uint8Array({ maxLength: 4 }),
          waitMs: fc.integer({ min: 0, max: 100 }),
        }),
        { maxLength: 100 },
      ),
      (packets) => {
        const buffer = new JitterBuffer()
        let nowMs = 0
        for (const packet of packets) {
          nowMs += packet.waitMs
          buffer.push(packet, nowMs)
          for (const heard of buffer.take(nowMs)) expect(samplesOf(heard)).toBeLessThanOrEqual(5 * 48_000)
          const left = buffer.leftMs(nowMs)
          if (left !== undefined) expect(left).toBeLessThanOrEqual(jitterWaitMs.most)
        }
      },
    ),
  )
})

it("with loss, jitter and reordering, the time is that of the timestamps and the order that of the sender", () => {
  const network = fc.array(fc.record({ isLost: fc.boolean(), delayMs: fc.integer({ min: 0, max: 45 }) }), {
    minLength: 2,
    maxLength: 200,
  })
  fc.assert(
    fc.property(network, (packets) => {
      const arrivals = packets
        .flatMap(({ delayMs, isLost }, number) =>
          isLost && number > 0 ? [] : [{ number, atMs: number * 20 + (number === 0 ? 0 : delayMs) }],
        )
        .toSorted((a, b) => a.atMs - b.atMs)
      const buffer = new JitterBuffer()
      const out: Array<Heard> = []
      const take = (nowMs: number): void => void out.push(...buffer.take(nowMs))
      let nowMs = 0
      for (const { atMs, number } of arrivals) {
        for (
          let left = buffer.leftMs(nowMs);
          left !== undefined && nowMs + left < atMs;
          left = buffer.leftMs(nowMs)
        ) {
          // A timer is never early.
          nowMs = Math.floor(nowMs + left) + 1
          take(nowMs)
        }
        nowMs = Math.max(nowMs, atMs)
        buffer.push(packetOf(number), nowMs)
        take(nowMs)
      }
      take(nowMs + jitterWaitMs.most)
      const numbers = out.flatMap((heard) => numberOf(heard) ?? [])
      expect(numbers).toEqual([...numbers].sort((a, b) => a - b))
      const samples = out.reduce((sum, heard) => sum + samplesOf(heard), 0)
      const last = numbers.at(-1)!
      expect(samples).toBe((last + 1) * 960)
    }),
  )
})
