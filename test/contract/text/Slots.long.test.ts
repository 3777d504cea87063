// A request whose client has disconnected costs nothing (protocol 1.9): in every state its slot is free at once, and no
// other stream's bytes change. `npm run bench -- text` measures the milliseconds; here they are compared with a short
// request's.
import fc from "fast-check"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { RawConnection, requestBytes } from "../../support/clients/RawHttp.ts"
import { TextStream, textOf } from "../../support/clients/TextStream.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { fakeModel, llamaModel } from "../../support/nodes/TestCatalog.ts"
import { eventually, startNode, type TestNode, untilIdle, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  const single = {
    ...fakeModel,
    id: "single",
    options: { slots: 1 },
    runtime: { load: "start", waitingLine: 2 },
  }
  node = await startNode({ models: [fakeModel, single, llamaModel] })
  await untilLoaded(node, "fake", "single")
  await node.post(path, body("llama", { max_tokens: 1 }))
})
afterAll(() => node.stop())

const path = "/v1/completions"
const body = (model: string, more: object) => ({ model, prompt: "Once upon a time", ...more })
const fake = (model: string, steps: Readonly<Record<string, unknown>>, more: object = {}) =>
  body(model, { prompt: script(steps), max_tokens: 4096, ...more })
const endless = { tokens: 4000, tokenMs: 20 }

/** Sends a request over a connection that can be destroyed without a close. */
const send = async (request: object): Promise<RawConnection> => {
  const connection = await RawConnection.open(node.port)
  const headers = { authorization: `Bearer ${node.keys.dev}`, "content-type": "application/json" }
  await connection.send(requestBytes("POST", path, headers, JSON.stringify(request)))
  return connection
}

/** Milliseconds until `free` holds, checked at every event loop tick. */
const timeUntil = async (free: () => boolean): Promise<number> => {
  const startMs = performance.now()
  while (!free()) {
    if (performance.now() - startMs > 60_000) throw new Error("the slot was never free")
    await new Promise((resolve) => setImmediate(resolve))
  }
  return performance.now() - startMs
}

const median = (values: ReadonlyArray<number>): number =>
  [...values].sort((a, b) => a - b)[values.length >> 1]!

/** A cancel takes no longer than this many short requests: no deadline and no long work is waited for. */
const shortRequests = 20

/**
 * Leaves several times, which returns how long the slot was taken then, and asks for one token after each: a machine that is busy for a
 * while slows both. The medians: any one may meet a busy machine.
 */
const expectAtOnce = async (
  count: number,
  leave: (nth: number) => Promise<number>,
  shortRequest: object,
): Promise<void> => {
  const times: Array<number> = []
  const short: Array<number> = []
  for (let nth = 0; nth < count; nth++) {
    times.push(await leave(nth))
    const startMs = performance.now()
    await (await node.post(path, shortRequest)).text()
    short.push(performance.now() - startMs)
  }
  expect(median(times)).toBeLessThan(shortRequests * median(short))
}

const shortFake = fake("fake", { tokens: 1 })

describe("a client that leaves", () => {
  for (const stream of [true, false]) {
    it(`while it waits for a slot (stream: ${stream})`, async () => {
      const first = new TextStream(await node.post(path, fake("single", endless, { stream: true })))
      await first.take(1)
      const leave = async () => {
        const waiting = await send(fake("single", { tokens: 1 }, { stream }))
        await eventually(() => node.gauges("single").waiting === 1, "it waits")
        waiting.destroy()
        const tookMs = await timeUntil(() => node.gauges("single").waiting === 0)
        expect(node.gauges("single").open).toBe(1)
        return tookMs
      }
      await expectAtOnce(5, leave, shortFake)
      // Clients that stayed are still served.
      const seen = first.events.length
      expect((await first.take(seen + 5)).length).toBeGreaterThanOrEqual(seen + 5)
      await first.leave()
      await untilIdle(node)
    })

    it(`while the model reads its prompt (stream: ${stream})`, async () => {
      const leave = async () => {
        const reading = await send(fake("fake", { tokens: 5, prefillMs: 60_000 }, { stream }))
        await eventually(() => node.gauges("fake").open === 1, "it has begun")
        reading.destroy()
        return timeUntil(() => node.gauges("fake").open === 0)
      }
      await expectAtOnce(5, leave, shortFake)
    })

    it(`while the model answers (stream: ${stream})`, async () => {
      const leave = async () => {
        const answering = await send(fake("fake", endless, { stream }))
        if (stream) await answering.bytes(1000)
        else await eventually(() => node.gauges("fake").open === 1, "it has begun")
        answering.destroy()
        return timeUntil(() => node.gauges("fake").open === 0)
      }
      await expectAtOnce(5, leave, shortFake)
    })

    it(`while the real model reads or answers (stream: ${stream})`, async () => {
      const prompts = ["Once upon a time", "and then they walked ".repeat(400)]
      const leave = async (nth: number) => {
        const prompt = prompts[nth % 2]
        const request = body("llama", { prompt, max_tokens: 400, temperature: 1, stream })
        const gone = await send({ ...request, seed: nth })
        await timeUntil(() => node.gauges("llama").open === 1)
        gone.destroy()
        return timeUntil(() => node.gauges("llama").open === 0)
      }
      await expectAtOnce(6, leave, body("llama", { max_tokens: 1 }))
    })
  }

  it("is counted in the metrics", async () => {
    const metrics = await node.metrics()
    for (const model of ["fake", "llama"]) {
      const slowest = metrics.get(`edgewise_cancel_to_idle_ms_max{model="${model}"}`)!
      expect(slowest).toBeGreaterThan(0)
      expect(slowest).toBe(Math.round(node.gauges(model).slowestCancelMs * 10) / 10)
    }
    expect(node.counts.aborts).toBeGreaterThan(0)
  })

  it("before its request has arrived whole holds nothing", async () => {
    const connection = await RawConnection.open(node.port)
    const headers = { authorization: `Bearer ${node.keys.dev}`, "content-length": "100000" }
    const before = node.counts.aborts
    await connection.send(requestBytes("POST", path, headers))
    await connection.send('{"model":"fake"')
    await eventually(() => node.counts.inFlight === 1, "its request runs")
    connection.destroy()
    await eventually(() => node.counts.inFlight === 0, "its request is over")
    expect(node.counts.aborts).toBe(before + 1)
    await untilIdle(node)
  })

  it("lets those behind it in the queue move up, and the queue still refuses one too many", async () => {
    const first = new TextStream(await node.post(path, fake("single", endless, { stream: true })))
    await first.take(1)
    const second = await send(fake("single", { tokens: 1 }))
    await eventually(() => node.gauges("single").waiting === 1, "the second waits")
    const third = node.post(path, fake("single", { tokens: 2, text: "3" }))
    await eventually(() => node.gauges("single").waiting === 2, "the third waits")
    const refused = await node.post(path, fake("single", { tokens: 1 }))
    expect(refused.status).toBe(503)
    expect(await refused.json()).toEqual({ detail: "Model is at capacity" })
    expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0)
    second.destroy()
    await eventually(() => node.gauges("single").waiting === 1, "the second has left")
    await first.leave()
    expect(await (await third).json()).toMatchObject({ choices: [{ text: "33" }] })
    await untilIdle(node)
  })
})

describe("departures and arrivals never change another stream's bytes", () => {
  /** A client of the property: disconnects after so many events, or stays to the end. */
  const client = fc.record({
    seed: fc.nat({ max: 7 }),
    tokens: fc.integer({ min: 1, max: 60 }),
    leavesAfter: fc.option(fc.nat({ max: 20 }), { freq: 1 }),
    stream: fc.boolean(),
  })
  type Client = typeof client extends fc.Arbitrary<infer C> ? C : never

  const holds = async (
    requestOf: (client: Client) => object,
    expected: (client: Client) => Promise<string>,
    numRuns: number,
  ) => {
    await fc.assert(
      fc.asyncProperty(fc.array(client, { minLength: 2, maxLength: 20 }), async (clients) => {
        const texts = await Promise.all(
          clients.map(async (each) => {
            if (each.leavesAfter !== null) {
              const stream = new TextStream(await node.post(path, { ...requestOf(each), stream: true }))
              await stream.take(each.leavesAfter)
              await stream.leave()
              return undefined
            }
            const response = await node.post(path, { ...requestOf(each), stream: each.stream })
            if (!each.stream) {
              const { choices } = (await response.json()) as { choices: [{ text: string }] }
              return choices[0].text
            }
            const stream = new TextStream(response)
            expect(await stream.toEnd()).toBe("complete")
            return textOf(stream.events)
          }),
        )
        for (const [i, text] of texts.entries())
          if (text !== undefined) expect(text).toBe(await expected(clients[i]!))
      }),
      { numRuns },
    )
    await untilIdle(node)
  }

  it("on the fake engine", async () => {
    const unit = ({ seed }: Client) => [`${seed}a`, `${seed}b `, `${seed}ü`]
    await holds(
      (each) => fake("fake", { tokens: each.tokens, text: unit(each), tokenMs: 1 }),
      async (each) => Array.from({ length: each.tokens }, (_, i) => unit(each)[i % 3]).join(""),
      20,
    )
  })

  it("on the real model", async () => {
    const alone = new Map<string, Promise<string>>()
    const request = ({ seed, tokens }: Client) =>
      body("llama", { seed, temperature: 1.2, max_tokens: tokens })
    const said = async (each: Client) => {
      const record = (await (await node.post(path, request(each))).json()) as { choices: [{ text: string }] }
      return record.choices[0].text
    }
    await holds(
      request,
      (each) => {
        const key = `${each.seed} ${each.tokens}`
        const known = alone.get(key) ?? said(each)
        alone.set(key, known)
        return known
      },
      8,
    )
  })
})
