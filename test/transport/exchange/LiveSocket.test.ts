// How many messages a WebSocket takes within one tick of the event loop, and how many wait to be read, without a network that may be
// slower than that.
import { Effect } from "effect"
import { afterEach, describe, expect, it, vi } from "vitest"
import { MemoryBudget } from "#domain/queues/MemoryBudget.ts"
import { Deadlines } from "#transport/Deadlines.ts"
import type { SocketChannel } from "#transport/exchange/Channel.ts"
import type { Exchange } from "#transport/exchange/Exchange.ts"
import { LiveSocket, type SocketTerms } from "#transport/exchange/LiveSocket.ts"
import { LoopTicks } from "#transport/LoopTicks.ts"
import { TransportCounters } from "#transport/TransportCounters.ts"
import { defaultSettings } from "#transport/TransportSettings.ts"

const newCounters = () =>
  new TransportCounters(
    new MemoryBudget({ node: defaultSettings.unreadBytes, user: defaultSettings.inboundBytes }),
  )

const openSocket = (counters = newCounters(), terms: SocketTerms = {}, ticks = new LoopTicks()) => {
  const closes: Array<readonly [code: number, reason: string]> = []
  const deadlines = new Deadlines(1_000)
  const listener = { counters, deadlines, settings: defaultSettings, ticks }
  const socket = new LiveSocket({ listener, interrupt: () => {} } as unknown as Exchange, terms)
  const end = (code: number, reason: string) => {
    closes.push([code, reason])
    socket.closed(code, reason)
  }
  const reading: Array<"pause" | "resume"> = []
  const channel = {
    end,
    getBufferedAmount: () => 0,
    pause: () => reading.push("pause"),
    resume: () => reading.push("resume"),
  }
  socket.open(channel as unknown as SocketChannel)
  return { closes, counters, reading, socket }
}

/** Writes down what it is told. */
const ownerOf = (id: string, told: Array<number> = []): SocketTerms => ({
  owner: { id, dropped: (bytes) => told.push(bytes) },
})

/** While the clock stands still: what comes back of an allowance, 200 messages a second, would add to the count. */
const taken = (sizeBytes: number, most: number): readonly [number, string | undefined] => {
  vi.spyOn(performance, "now").mockReturnValue(0)
  const { closes, socket } = openSocket()
  const data = new Uint8Array(sizeBytes)
  let count = 0
  while (count < most && closes.length === 0) {
    socket.message(data, true)
    if (closes.length === 0) count++
  }
  return [count, closes[0]?.[1]]
}

afterEach(() => {
  vi.restoreAllMocks()
})

describe("a WebSocket takes in one tick", () => {
  it("a session of 10 ms frames", () => expect(taken(320, 12_000)).toEqual([12_000, undefined]))

  it("16,384 messages", () => expect(taken(256, 100_000)).toEqual([16_384, "too many messages at once"]))

  it("2,048 empty ones, and in proportion more of those that are not", () => {
    const [empty, reason] = taken(0, 100_000)
    expect(reason).toBe("too many small messages")
    expect(empty).toBe(2_048)
    const [half] = taken(128, 100_000)
    expect(half).toBe(2 * 2_048)
  })

  it("16 MiB", () => {
    const [count, reason] = taken(64 * 1024, 1_000)
    expect([count, reason]).toEqual([256, "messages come faster than they are read"])
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

it("the handlers of sockets that close together go on in several ticks", async () => {
  let looks = 0
  // Each look at the clock is 2 ms later: two callbacks in a tick.
  const ticks = new LoopTicks(() => 2 * looks++)
  let ended = 0
  const sockets = Array.from({ length: 6 }, () => openSocket(newCounters(), {}, ticks).socket)
  for (const { pull } of sockets) Effect.runFork(Effect.exit(pull)).addObserver(() => ended++)
  for (const socket of sockets) socket.closed(1006, "")
  const seen: Array<number> = []
  for (let tick = 0; tick < 3; tick++) {
    await new Promise((resolve) => setImmediate(resolve))
    seen.push(ended)
  }
  expect(seen).toEqual([2, 4, 6])
})

describe("messages that the handler has not read", () => {
  const kib = 1024

  it("pause the connection over 256 KiB, are taken in parts, and let it go on", async () => {
    const { closes, counters, reading, socket } = openSocket()
    for (let i = 0; i < 4; i++) socket.message(new Uint8Array(64 * kib), true)
    expect(reading).toEqual([])
    for (let i = 0; i < 8; i++) socket.message(new Uint8Array(64 * kib), true)
    expect(reading).toEqual(["pause"])
    expect(counters.messageBufferedBytes).toBe(12 * 64 * kib)
    const parts: Array<number> = []
    while (counters.messageBufferedBytes > 0) {
      parts.push((await Effect.runPromise(socket.pull)).length)
      expect(reading).toEqual(parts.length === 1 ? ["pause"] : ["pause", "resume"])
    }
    expect(parts).toEqual([4, 4, 4])
    expect(closes).toEqual([])
  })

  it("are taken whole where one is larger than that", async () => {
    const { socket } = openSocket()
    socket.message(new Uint8Array(1024 * kib), true)
    socket.message(new Uint8Array(1), true)
    expect((await Effect.runPromise(socket.pull)).map((frame) => frame.length)).toEqual([1024 * kib])
    expect((await Effect.runPromise(socket.pull)).map((frame) => frame.length)).toEqual([1])
  })

  it("are not counted any more when the socket has ended, and counted as overrun where they ended it", () => {
    const { closes, counters, socket } = openSocket()
    while (closes.length === 0) socket.message(new Uint8Array(64 * kib), true)
    expect(counters.messageBufferedBytes).toBe(0)
    expect(counters.socketsOverrun).toBe(1)
  })

  it("of all sockets are bounded; one that is read as it comes goes on", () => {
    const counters = newCounters()
    const full = Array.from({ length: 24 }, () => openSocket(counters))
    const calm = openSocket(counters)
    const ended = () => full.filter(({ closes }) => closes.length > 0)
    for (let i = 0; i < 220; i++) {
      for (const { closes, socket } of full)
        if (closes.length === 0) socket.message(new Uint8Array(64 * kib), true)
      if (i < 4) calm.socket.message(new Uint8Array(64 * kib), true)
      expect(counters.messageBufferedBytes).toBeLessThanOrEqual(defaultSettings.unreadBytes)
    }
    expect(ended().length).toBeGreaterThan(0)
    expect(ended().length).toBeLessThan(24)
    expect(calm.closes).toEqual([])
  })
})

describe("messages that no handler reads", () => {
  const mib = 1024 * 1024
  /** Of so many bytes, in memory of its own. */
  const own = (bytes: number) => new Uint8Array(bytes)

  it("are told where they end the socket, with the one that was too much; their memory is free at once", async () => {
    const told: Array<number> = []
    const counters = newCounters()
    const { closes, socket } = openSocket(counters, ownerOf("user", told))
    const messages = Array.from({ length: 17 }, () => own(mib))
    for (const message of messages) socket.message(message, false, true)
    expect(closes).toEqual([[1009, "messages come faster than they are read"]])
    expect(told).toEqual([17 * mib])
    // The last one was never kept.
    expect(messages.map(({ byteLength }) => byteLength)).toEqual([
      ...Array.from({ length: 16 }, () => 0),
      mib,
    ])
    expect(counters.messageBufferedBytes).toBe(0)
    expect(await Effect.runPromise(Effect.isFailure(socket.pull))).toBe(true)
    socket.leave(1000)
    expect(told).toEqual([17 * mib])
  })

  it("are told and free when the handler ends; none of those that it has read", async () => {
    const told: Array<number> = []
    const { counters, socket } = openSocket(newCounters(), ownerOf("user", told))
    const [read, left] = [own(mib), own(2 * mib)]
    socket.message(read, false, true)
    socket.message(left, true, true)
    expect(await Effect.runPromise(socket.pull)).toHaveLength(1)
    socket.leave(1000)
    expect(told).toEqual([2 * mib])
    expect([read.byteLength, left.byteLength]).toEqual([mib, 0])
    expect(counters.messageBufferedBytes).toBe(0)
  })

  it("none is told where all were read", async () => {
    const told: Array<number> = []
    const { socket } = openSocket(newCounters(), ownerOf("user", told))
    socket.message(own(mib), false, true)
    await Effect.runPromise(socket.pull)
    socket.leave(1000)
    expect(told).toEqual([])
  })
})

describe("large messages that wait", () => {
  const mib = 1024 * 1024

  /** Fills sockets with messages of a size, in turn, as far as they take them. */
  const filled = (sizeBytes: number, ids: ReadonlyArray<string>) => {
    const counters = newCounters()
    const sockets = ids.map((id) => ({ id, ...openSocket(counters, ownerOf(id)) }))
    const bytes = new Map<string, number>()
    for (let round = 0; round < (20 * mib) / sizeBytes; round++) {
      for (const { closes, id, socket } of sockets) {
        if (closes.length > 0) continue
        socket.message(new Uint8Array(sizeBytes), false)
        if (closes.length === 0) bytes.set(id, Math.max(bytes.get(id) ?? 0, counters.unreadLarge.heldBy(id)))
      }
    }
    return { bytes, counters, sockets }
  }

  it("are counted for all sockets of a user: it has half of what is free, and others find room", () => {
    const { bytes, counters } = filled(
      mib,
      Array.from({ length: 20 }, () => "user"),
    )
    const most = bytes.get("user") ?? 0
    expect(most).toBeGreaterThan(40 * mib)
    expect(most).toBeLessThan(defaultSettings.unreadBytes / 3 + mib)
    const other = openSocket(counters, ownerOf("other"))
    for (let at = 0; at < 5; at++) other.socket.message(new Uint8Array(3 * mib), false)
    expect(other.closes).toEqual([])
  })

  it("are not those of a client that streams: ten sockets of a user wait with two minutes of audio each", () => {
    const second = 64_000
    const counters = newCounters()
    for (let sockets = 0; sockets < 10; sockets++) {
      const { closes, socket } = openSocket(counters, ownerOf("user"))
      for (let at = 0; at < 120; at++) socket.message(new Uint8Array(second), false)
      expect(closes).toEqual([])
    }
  })

  it("count no more once they are read, or the socket has ended", async () => {
    const { counters, socket } = openSocket(newCounters(), ownerOf("user"))
    for (let at = 0; at < 3; at++) socket.message(new Uint8Array(2 * mib), false)
    expect(counters.unreadLarge.held).toBe(6 * mib)
    await Effect.runPromise(socket.pull)
    expect(counters.unreadLarge.held).toBe(4 * mib)
    socket.closed(1000, "")
    expect(counters.unreadLarge.held).toBe(0)
  })

  it("one that its reader waits for is taken, whatever else waits", async () => {
    const { counters } = filled(
      mib,
      Array.from({ length: 20 }, () => "user"),
    )
    const size = { mostBytes: 15 * mib, cuts: true }
    const { closes, socket } = openSocket(counters, { ...ownerOf("user"), size })
    const pulled = Effect.runPromise(socket.pull)
    socket.message(new Uint8Array(15 * mib), true, true)
    expect((await pulled).map((frame) => frame.length)).toEqual([15 * mib])
    expect(closes).toEqual([])
  })
})

describe("messages of which a part has come", () => {
  const mib = 1024 * 1024

  it("are counted for all sockets, and not any more when they are whole, or the socket has ended", async () => {
    const { counters, socket } = openSocket()
    expect(socket.arriving(2 * mib)).toBe(true)
    expect(socket.arriving(3 * mib)).toBe(true)
    expect(counters.messageBufferedBytes).toBe(3 * mib)
    socket.message(new Uint8Array(4 * mib), true, true)
    expect(counters.messageBufferedBytes).toBe(4 * mib)
    await Effect.runPromise(socket.pull)
    expect(counters.messageBufferedBytes).toBe(0)
    socket.arriving(5 * mib)
    socket.arriving(4_096)
    expect(counters.messageBufferedBytes).toBe(4_096)
    socket.closed(1000, "")
    expect(counters.messageBufferedBytes).toBe(0)
  })

  it("do not keep the connection from being read", async () => {
    const { reading, socket } = openSocket()
    for (let i = 0; i < 8; i++) socket.message(new Uint8Array(64 * 1024), true)
    expect(reading).toEqual(["pause"])
    socket.arriving(5 * mib)
    await Effect.runPromise(socket.pull)
    expect(reading).toEqual(["pause", "resume"])
  })

  it("are bounded over all sockets: others still find room for a shorter one", () => {
    const counters = newCounters()
    const sockets = Array.from({ length: 40 }, () => openSocket(counters).socket)
    const admitted = sockets.filter((socket) => socket.arriving(14 * mib))
    expect(admitted.length).toBeGreaterThan(4)
    expect(admitted.length).toBeLessThan(9)
    expect(counters.messageBufferedBytes).toBeLessThanOrEqual(defaultSettings.unreadBytes)
    expect(counters.socketsOverrun).toBe(40 - admitted.length)
    expect(openSocket(counters).socket.arriving(mib)).toBe(true)
  })
})
