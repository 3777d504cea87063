// Readers that stop reading: the bytes buffered for one here are bounded, its generation pauses, it is cut after the
// stall deadline, and no other client gets slower. The kernel buffers about 4 MB for a reader before this process does, so
// the units are large.
import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { defaultSettings } from "#transport/TransportSettings.ts"
import { parseEventStream } from "../support/clients/EventStream.ts"
import { RawConnection, requestBytes } from "../support/clients/RawHttp.ts"
import { SocketClient } from "../support/clients/SocketClient.ts"
import { TextStream } from "../support/clients/TextStream.ts"
import { inLong, isLong } from "../support/groups/Runs.ts"
import { script } from "../support/nodes/FakeNode.ts"
import { fakeModel } from "../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilIdle, untilLoaded } from "../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  // 30 s in production; everything else as there. Longer than a busy machine stands still: the reader that is slow must not be cut for that.
  node = await startNode({
    models: [{ ...fakeModel, options: { slots: 256 } }],
    transport: { stallTimeoutMs: 5_000 },
  })
  await untilLoaded(node, "fake")
})
afterAll(() => node.stop())

const path = "/v1/completions"
const unitBytes = 16_000
/**
 * 4 MB/s, so that a pause arrives in time on a busy machine too: 256 KB are 64 ms of it. All of it would take 16 s, of
 * which the kernel has room for one.
 */
const large = { tokens: 4000, tokenMs: 4, text: "x".repeat(unitBytes) }
/** Far beyond what kernels keep for one connection. */
const largeBytes = large.tokens * unitBytes

const keyOf = async (org: string): Promise<string> => {
  const made = Effect.flatMap(Accounts, (accounts) => accounts.createOrg({ name: org, paymentMethod: true }))
  await node.run(made)
  return (await node.run(Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org })))).apiKey
}
const outputTokens = (org: string): Promise<number> =>
  node.run(
    Effect.gen(function* () {
      const ledger = yield* UsageLedger
      const rows = yield* ledger.usage((yield* (yield* Accounts).showOrg(org)).id, 0)
      return rows.reduce((sum, row) => sum + row.outputTokens, 0)
    }),
  )

const open = async (steps: object, key = node.keys.dev): Promise<RawConnection> => {
  const connection = await RawConnection.open(node.port)
  const body = { model: "fake", prompt: script({ ...steps }), max_tokens: 4096, stream: true }
  await connection.send(requestBytes("POST", path, { authorization: `Bearer ${key}` }, JSON.stringify(body)))
  return connection
}

/** A request whose client stops reading after the first bytes. */
const openStopped = async (steps: object, key?: string): Promise<RawConnection> => {
  const connection = await open(steps, key)
  await connection.bytes(1)
  connection.socket.pause()
  return connection
}

/** The largest value that `read` returned at any event loop tick until `over` holds. */
const peak = async (read: () => number, over: () => boolean): Promise<number> => {
  let most = 0
  await eventually(async () => {
    for (let turn = 0; turn < 50; turn++) {
      most = Math.max(most, read())
      await new Promise((resolve) => setImmediate(resolve))
    }
    return over()
  }, "the reader is dealt with")
  return most
}

it("one that stops has its generation paused, a bounded buffer, and is cut", async () => {
  const stop = async (org: string) => {
    const key = await keyOf(org)
    const before = node.counts.slowReadersCut
    const stopped = await openStopped(large, key)
    const most = await peak(
      () => node.counts.replyBufferedBytes,
      () => node.counts.slowReadersCut === before + 1,
    )
    stopped.destroy()
    return most
  }
  // What an engine makes while this process stands still comes at once: the reader is cut before it is seen to wait.
  let [org, most] = ["stopped", await stop("stopped")]
  while (most === 0) [org, most] = [`${org}-again`, await stop(`${org}-again`)]
  expect(most).toBeLessThanOrEqual(defaultSettings.readerBufferBytes)
  await untilIdle(node)
  expect(node.counts.replyBufferedBytes).toBe(0)
  // Generated: what the kernel took and the buffer held. Without a pause it would have been all of it.
  expect((await outputTokens(org)) * unitBytes).toBeLessThan(largeBytes / 2)
})

/** The longest time between two ticks of a timer of 10 ms while `during` runs, milliseconds. */
const longestPause = async <A>(during: () => Promise<A>): Promise<readonly [A, number]> => {
  let lastMs = performance.now()
  let longestMs = 0
  const tick = () => {
    const nowMs = performance.now()
    longestMs = Math.max(longestMs, nowMs - lastMs)
    lastMs = nowMs
  }
  const ticking = setInterval(tick, 10)
  try {
    const result = await during()
    tick()
    return [result, longestMs]
  } finally {
    clearInterval(ticking)
  }
}

it("one that is slow but reads gets everything, whole", async () => {
  const steps = { ...large, tokens: 500 }
  let before = node.counts.slowReadersCut
  const readSlowly = async () => {
    before = node.counts.slowReadersCut
    const slow = await openStopped(steps)
    // Lets all buffers fill first: from then on the reader decides the pace.
    await eventually(
      () => node.counts.replyBufferedBytes > 0 || node.counts.slowReadersCut > before,
      "data waits for the reader",
    )
    const sip = setInterval(() => {
      slow.socket.resume()
      setImmediate(() => slow.socket.pause())
    }, 50)
    const response = await slow.response().finally(() => clearInterval(sip))
    slow.destroy()
    return response
  }
  let [response, pausedMs] = await longestPause(readSlowly)
  // What an engine makes while this process stands still comes at once, and cuts a reader if it is more than is buffered for one.
  while (!response.complete) {
    expect(pausedMs).toBeGreaterThan(50)
    ;[response, pausedMs] = await longestPause(readSlowly)
  }
  const events = parseEventStream(response.body.toString("utf8"))
  expect(events.at(-1)).toBe("[DONE]")
  const texts = events.slice(0, -2).map((data) => JSON.parse(data).choices[0].text as string)
  expect(texts).toHaveLength(500)
  expect(texts.every((text) => text === large.text)).toBe(true)
  // Not for its slowness.
  expect(node.counts.slowReadersCut).toBe(before)
})

it("one on a WebSocket is paused and cut as well", inLong, async () => {
  const key = await keyOf("socket")
  const before = node.counts.slowReadersCut
  const client = await SocketClient.open(`${node.socketBase}/v1/completions/ws?token=${key}`)
  client.send({ model: "fake", prompt: script(large), max_tokens: 4096, request_id: 1 })
  await client.until((frames) => frames.length > 0)
  client.socket.pause()
  await eventually(() => node.counts.slowReadersCut === before + 1, "the reader is cut")
  await untilIdle(node)
  expect((await outputTokens("socket")) * unitBytes).toBeLessThan(largeBytes / 2)
  client.vanish()
})

it("one on a WebSocket that is flooded is given up at once", async () => {
  const key = await keyOf("flooded")
  const client = await SocketClient.open(`${node.socketBase}/v1/completions/ws?token=${key}`)
  // At full engine speed far more is in flight than a pause could still stop.
  const flood = { tokens: 4000, text: "x".repeat(20_000) }
  client.send({ model: "fake", prompt: script(flood), max_tokens: 4096, request_id: 1 })
  await client.until((frames) => frames.length > 0)
  client.socket.pause()
  await untilIdle(node)
  expect(await outputTokens("flooded")).toBeLessThan(flood.tokens / 2)
  client.vanish()
  await eventually(() => node.counts.webSockets === 0, "the socket is gone")
})

// Load, which takes both cores for seconds.
if (isLong)
  it("two hundred do not slow other clients", async () => {
    /** Milliseconds of one reader's stream of 150 steps, the best of three: other processes can only add time. */
    const pace = async (): Promise<number> => {
      const times: Array<number> = []
      for (let i = 0; i < 3; i++) {
        const startMs = performance.now()
        const body = {
          model: "fake",
          prompt: script({ tokens: 150, tokenMs: 3 }),
          max_tokens: 150,
          stream: true,
        }
        const stream = new TextStream(await node.post(path, body))
        expect(await stream.toEnd()).toBe("complete")
        expect(stream.events).toHaveLength(152)
        times.push(performance.now() - startMs)
      }
      return Math.min(...times)
    }
    const alone = await pace()
    // 40 with full buffers, and 160 that have stopped as well but are sent little: filling two hundred
    // kernel buffers would only test the machine.
    const cutBefore = node.counts.slowReadersCut
    const full = await Promise.all(Array.from({ length: 40 }, () => openStopped({ ...large, tokenMs: 2 })))
    const idle = await Promise.all(
      Array.from({ length: 160 }, () => openStopped({ tokens: 4000, tokenMs: 50 })),
    )
    await eventually(() => node.counts.replyBufferedBytes > 0, "data waits for readers")
    expect(node.gauges("fake").open).toBe(200)
    const beside = await pace()
    expect(beside / alone).toBeLessThan(3)
    expect(node.counts.replyBufferedBytes).toBeLessThanOrEqual(40 * defaultSettings.readerBufferBytes)
    await eventually(() => node.counts.slowReadersCut === cutBefore + 40, "the full ones are cut")
    for (const connection of [...full, ...idle]) connection.destroy()
    await untilIdle(node)
    expect(node.counts.replyBufferedBytes).toBe(0)
  })
