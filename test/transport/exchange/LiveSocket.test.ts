// How many messages a WebSocket takes within one tick of the event loop, without a network that may be slower than that.
import { describe, expect, it } from "vitest"
import { Deadlines } from "#transport/Deadlines.ts"
import type { SocketChannel } from "#transport/exchange/Channel.ts"
import type { Exchange } from "#transport/exchange/Exchange.ts"
import { LiveSocket } from "#transport/exchange/LiveSocket.ts"
import { LoopTicks } from "#transport/LoopTicks.ts"
import { TransportCounters } from "#transport/TransportCounters.ts"
import { defaultSettings } from "#transport/TransportSettings.ts"

const openSocket = () => {
  const closes: Array<readonly [code: number, reason: string]> = []
  const counters = new TransportCounters()
  const deadlines = new Deadlines(1_000)
  const listener = { counters, deadlines, settings: defaultSettings, ticks: new LoopTicks() }
  const socket = new LiveSocket({ listener, interrupt: () => {} } as unknown as Exchange)
  const end = (code: number, reason: string) => {
    closes.push([code, reason])
    socket.closed(code, reason)
  }
  socket.open({ end, getBufferedAmount: () => 0 } as unknown as SocketChannel)
  return { closes, counters, socket }
}

const taken = (sizeBytes: number, most: number): readonly [number, string | undefined] => {
  const { closes, socket } = openSocket()
  const data = new Uint8Array(sizeBytes)
  let count = 0
  while (count < most && closes.length === 0) {
    socket.message(data, true)
    if (closes.length === 0) count++
  }
  return [count, closes[0]?.[1]]
}

describe("a WebSocket takes in one tick", () => {
  it("a session of 10 ms frames", () => expect(taken(320, 12_000)).toEqual([12_000, undefined]))

  it("16,384 messages", () => expect(taken(256, 100_000)).toEqual([16_384, "too many messages at once"]))

  it("2,048 empty ones, and in proportion more of those that are not", () => {
    const [empty, reason] = taken(0, 100_000)
    expect(reason).toBe("too many small messages")
    // What comes back meanwhile is 200 a second.
    expect(empty).toBeGreaterThanOrEqual(2_048)
    expect(empty).toBeLessThan(2_148)
    const [half] = taken(128, 100_000)
    expect(half / empty).toBeCloseTo(2, 0)
  })

  it("8 MiB", () => {
    const [count, reason] = taken(64 * 1024, 1_000)
    expect([count, reason]).toEqual([128, "messages come faster than they are read"])
  })

  it("and as many again in the next", async () => {
    const { closes, socket } = openSocket()
    for (let tick = 0; tick < 3; tick++) {
      for (let i = 0; i < 10_000; i++) socket.message(new Uint8Array(256), true)
      await new Promise((resolve) => setImmediate(resolve))
    }
    expect(closes).toEqual([])
  })
})
