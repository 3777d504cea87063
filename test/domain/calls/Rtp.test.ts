// RTP and RTCP packets: what is written is read again, and no bytes make a reader fail.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { readReports, roundTripOf, sentTimeOf, shortNtp, writeSenderReport } from "#domain/calls/Rtcp.ts"
import { isRtcp, parseRtp, writeRtp } from "#domain/calls/Rtp.ts"

const packet = fc.record({
  payloadType: fc.integer({ min: 96, max: 127 }),
  marker: fc.boolean(),
  sequence: fc.integer({ min: 0, max: 0xffff }),
  timestamp: fc.integer({ min: 0, max: 0xffff_ffff }),
  ssrc: fc.integer({ min: 0, max: 0xffff_ffff }),
  payload: fc.uint8Array({ maxLength: 200 }),
})

describe("RTP", () => {
  it("reads what it writes", () => {
    fc.assert(
      fc.property(packet, (given) => {
        const bytes = writeRtp(given)
        expect(parseRtp(bytes)).toEqual(given)
        expect(isRtcp(bytes)).toBe(false)
      }),
    )
  })

  it("leaves out sources, extension and padding", () => {
    const plain = writeRtp({
      payloadType: 111,
      marker: false,
      sequence: 7,
      timestamp: 960,
      ssrc: 5,
      payload: new Uint8Array([1, 2, 3]),
    })
    const sources = [0, 0, 0, 9]
    const extension = [0xbe, 0xde, 0, 1, 0x10, 0xff, 0, 0]
    const padding = [0, 2]
    const bytes = new Uint8Array([...plain.slice(0, 12), ...sources, ...extension, 1, 2, 3, ...padding])
    bytes[0] = 0x80 | 0x20 | 0x10 | 1
    expect(parseRtp(bytes)?.payload).toEqual(new Uint8Array([1, 2, 3]))
  })

  it("reads no more than there is", () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        const found = parseRtp(bytes)
        if (found !== undefined) expect(found.payload.length).toBeLessThanOrEqual(bytes.length - 12)
        expect(readReports(bytes).length).toBeLessThanOrEqual(3)
      }),
    )
  })
})

describe("RTCP", () => {
  it("reads what it writes of the other side's audio", () => {
    const block = fc.record({
      ssrc: fc.integer({ min: 0, max: 0xffff_ffff }),
      lost: fc.nat({ max: 255 }).map((units) => units / 256),
      lostInAll: fc.nat({ max: 0xff_ffff }),
      newest: fc.integer({ min: 0, max: 0xffff_ffff }),
      jitter: fc.integer({ min: 0, max: 0xffff_ffff }),
      lastReport: fc.integer({ min: 0, max: 0xffff_ffff }),
      sinceLastReport: fc.integer({ min: 0, max: 0xffff_ffff }),
    })
    fc.assert(
      fc.property(block, (received) => {
        const sent = { ssrc: 9, unixMs: 0, timestamp: 1, packets: 2, bytes: 3 }
        expect(readReports(writeSenderReport({ ...sent, received }))).toEqual([received])
        expect(readReports(writeSenderReport({ ...sent, received: undefined }))).toEqual([])
      }),
    )
  })

  it("gives the round trip of a report that repeats the time of this node's", () => {
    const sentMs = 1_795_392_000_000
    const report = writeSenderReport({
      ssrc: 9,
      unixMs: sentMs,
      timestamp: 1,
      packets: 2,
      bytes: 3,
      received: undefined,
    })
    expect(sentTimeOf(report)).toBe(shortNtp(sentMs))
    expect(isRtcp(report)).toBe(true)
    expect(report.length % 4).toBe(0)
    // A receiver report of the caller, 40 ms after it got the report, 30 ms of way in all.
    const view = new DataView(new ArrayBuffer(32))
    view.setUint8(0, 0x81)
    view.setUint8(1, 201)
    view.setUint16(2, 7)
    view.setUint32(8, 9)
    view.setUint8(12, 64)
    view.setUint32(20, 480)
    view.setUint32(24, shortNtp(sentMs))
    view.setUint32(28, Math.round(0.04 * 65_536))
    const [block] = readReports(new Uint8Array(view.buffer))
    expect(block).toMatchObject({ ssrc: 9, lost: 0.25, jitter: 480 })
    expect(roundTripOf(block!, sentMs + 70)).toBeCloseTo(30, 0)
    expect(roundTripOf({ ...block!, lastReport: 0 }, sentMs)).toBeUndefined()
    expect(roundTripOf(block!, sentMs - 1_000)).toBeUndefined()
  })
})
