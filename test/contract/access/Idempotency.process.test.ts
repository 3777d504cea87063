// `Idempotency-Key`: a retry gets the first answer and is not charged, for every kind of answer, also after a restart;
// another request with the same key is refused, and so is one that comes while the first runs. Over a real listener.
import { Effect } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { textUsage } from "#domain/models/Usage.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { listener, noise, wavOf } from "../../support/clients/LiveClient.ts"
import { path as transcriptions } from "../../support/clients/TranscriptionClient.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { orgWith, receiptsOf } from "../../support/nodes/Ledger.ts"
import { fakeVoice, spokenScript } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import {
  eventually,
  startNode,
  type TestNode,
  temporaryDir,
  untilIdle,
  untilLoaded,
} from "../../support/nodes/TestNode.ts"

const dir = temporaryDir()
const single = { ...fakeModel, id: "single", options: { slots: 1 } }
const models = [fakeModel, single, fakeVoice, listener()]
const start = async () => {
  const started = await startNode({ models, dataDir: dir.path })
  await untilLoaded(started, "fake", "fake-voice", "listener")
  return started
}
let node: TestNode
beforeAll(async () => {
  node = await start()
})
afterAll(async () => {
  await node.stop()
  dir.remove()
})

const completion = (steps: object = { tokens: 4 }, extra: object = {}) => ({
  model: "fake",
  prompt: script(steps as Record<string, unknown>),
  max_tokens: 50,
  ...extra,
})
const speech = (extra: object = {}, pieces = 2) => ({
  model: "fake-voice",
  voice: "fake",
  input: spokenScript({ pieces }),
  ...extra,
})

interface Sent {
  readonly path?: string
  readonly body?: object
  readonly idempotencyKey?: string
  readonly key?: string
  readonly signal?: AbortSignal
}
const send = ({ body, idempotencyKey, key = node.keys.dev, path = "/v1/completions", signal }: Sent) =>
  node.fetch(path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${key}`,
      "content-type": "application/json",
      ...(idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey }),
    },
    body: JSON.stringify(body ?? completion()),
    ...(signal === undefined ? {} : { signal }),
  })

/** A form with a boundary of its own each time, as every client makes one. */
const transcribe = (query: string, idempotencyKey: string, key: string, seconds = 1) => {
  const form = new FormData()
  form.append("file", new File([wavOf(noise(seconds))], "speech.wav"))
  return node.fetch(`${transcriptions}?model=listener&${query}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "idempotency-key": idempotencyKey },
    body: form,
  })
}

let orgs = 0
const freshOrg = async (micro = 1_000_000) => {
  const org = `org${orgs++}`
  return { org, key: await orgWith(node, org, micro) }
}
const charges = async (org: string): Promise<number> => {
  await untilIdle(node)
  return (await receiptsOf(node, org)).length
}

/** Charges an organization everything it has. */
const spendAll = (org: string, key: string) =>
  node.run(
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const ledger = yield* UsageLedger
      yield* ledger.flush
      const { creditsMicroDollars: microDollars } = yield* accounts.showOrg(org)
      const reservation = yield* ledger.reserve(yield* accounts.authenticate(key), microDollars)
      yield* ledger.settle(reservation, { model: "fake", usage: textUsage(1, 1), microDollars })
    }).pipe(Effect.scoped),
  )

const whole = async (response: Response) => ({
  status: response.status,
  type: response.headers.get("content-type"),
  receipt: response.headers.get("x-receipt-id"),
  body: Buffer.from(await response.arrayBuffer()).toString("base64"),
})

describe("a retry", () => {
  const kinds: ReadonlyArray<readonly [string, (key: string, idempotencyKey: string) => Promise<Response>]> =
    [
      ["a completion", (key, idempotencyKey) => send({ key, idempotencyKey })],
      [
        "a chat",
        (key, idempotencyKey) =>
          send({
            key,
            idempotencyKey,
            path: "/v1/chat/completions",
            body: { model: "fake", messages: [{ role: "user", content: "x" }] },
          }),
      ],
      [
        "a stream, events and all",
        (key, idempotencyKey) =>
          send({ key, idempotencyKey, body: completion({ tokens: 9 }, { stream: true }) }),
      ],
      [
        "speech",
        (key, idempotencyKey) => send({ key, idempotencyKey, path: "/v1/audio/speech", body: speech() }),
      ],
      [
        "speech in one body",
        (key, idempotencyKey) =>
          send({
            key,
            idempotencyKey,
            path: "/v1/audio/speech",
            body: speech({ response_format: "wav" }),
          }),
      ],
      [
        "a speech stream",
        (key, idempotencyKey) =>
          send({ key, idempotencyKey, path: "/v1/audio/speech", body: speech({ stream: true }) }),
      ],
      ["a transcription", (key, idempotencyKey) => transcribe("sync=true", idempotencyKey, key)],
      ["a transcription stream", (key, idempotencyKey) => transcribe("stream=true", idempotencyKey, key)],
      ["a job: the same job", (key, idempotencyKey) => transcribe("", idempotencyKey, key)],
    ]

  it.each(kinds)("of %s is free and gets the first answer", async (_, ask) => {
    const { key, org } = await freshOrg()
    const response = await ask(key, "retry-1")
    expect(response.headers.get("idempotency-replayed")).toBeNull()
    const first = await whole(response)
    expect(first.status).toBeLessThan(300)
    await eventually(async () => (await charges(org)) === 1, "the first answer is charged")
    for (let i = 0; i < 2; i++) {
      const again = await ask(key, "retry-1")
      expect(again.headers.get("idempotency-replayed")).toBe("true")
      expect(again.headers.get("x-request-id")).not.toBe(response.headers.get("x-request-id"))
      expect(await whole(again)).toEqual(first)
    }
    expect(await charges(org)).toBe(1)
  })

  it("needs no money", async () => {
    const { key, org } = await freshOrg()
    for (const ask of [
      () => send({ key, idempotencyKey: "last-cent", body: completion({ tokens: 50 }) }),
      () => transcribe("sync=true", "last-cent-audio", key),
    ]) {
      await whole(await ask())
    }
    await untilIdle(node)
    await spendAll(org, key)
    expect((await send({ key })).status).toBe(402)
    expect((await send({ key, idempotencyKey: "last-cent", body: completion({ tokens: 50 }) })).status).toBe(
      200,
    )
    expect((await transcribe("sync=true", "last-cent-audio", key)).status).toBe(200)
  })

  it("without a key, or with another, is a request like any", async () => {
    const { key, org } = await freshOrg()
    for (const idempotencyKey of [undefined, undefined, "one", "two"]) {
      const response = await send(idempotencyKey === undefined ? { key } : { key, idempotencyKey })
      expect(response.status).toBe(200)
      await whole(response)
    }
    expect(await charges(org)).toBe(4)
  })

  it("survives a restart", async () => {
    const { key, org } = await freshOrg()
    const stream = { key, idempotencyKey: "restart", body: completion({ tokens: 7 }, { stream: true }) }
    const audio = { key, idempotencyKey: "restart-audio", path: "/v1/audio/speech", body: speech({}, 40) }
    const before = [await whole(await send(stream)), await whole(await send(audio))]
    expect(before[1]!.body.length).toBeGreaterThan(400_000)
    expect(await charges(org)).toBe(2)
    await node.stop()
    node = await start()
    expect([await whole(await send(stream)), await whole(await send(audio))]).toEqual(before)
    expect((await send({ ...stream, body: completion() })).status).toBe(422)
    expect(await charges(org)).toBe(2)
  })
})

describe("the same key", () => {
  it("with another body, address or file is refused clearly", async () => {
    const { key, org } = await freshOrg()
    await whole(await send({ key, idempotencyKey: "k" }))
    await whole(await transcribe("sync=true", "t", key))
    for (const other of [
      send({ key, idempotencyKey: "k", body: completion({ tokens: 5 }) }),
      send({ key, idempotencyKey: "k", path: "/v1/completions?x=1" }),
      send({ key, idempotencyKey: "k", path: "/v1/chat/completions" }),
      transcribe("sync=true", "t", key, 2),
      transcribe("sync=true&language=en", "t", key),
    ]) {
      const response = await other
      expect(response.status).toBe(422)
      expect(await response.json()).toEqual({
        detail: "Idempotency-Key: was used before with another request",
      })
    }
    expect(await charges(org)).toBe(2)
  })

  it("of another organization or user is another key", async () => {
    const [one, two] = [await freshOrg(), await freshOrg()]
    const first = await whole(await send({ key: one.key, idempotencyKey: "shared" }))
    const second = await send({ key: two.key, idempotencyKey: "shared" })
    expect(second.headers.get("idempotency-replayed")).toBeNull()
    const answer = await whole(second)
    expect(answer.receipt).not.toBe(first.receipt)
    expect([await charges(one.org), await charges(two.org)]).toEqual([1, 1])
  })

  it("while the first is being answered is 409, to be tried again", async () => {
    const { key, org } = await freshOrg()
    // The only slot is taken, so the first waits for as long as it has to.
    const leaving = new AbortController()
    const endless = completion(
      { tokens: 4_000, tokenMs: 50 },
      { model: "single", max_tokens: 4_000, stream: true },
    )
    await send({ body: endless, signal: leaving.signal })
    const slow = { key, idempotencyKey: "slow", body: completion({ tokens: 4 }, { model: "single" }) }
    const first = send(slow)
    await eventually(() => node.gauges("single").waiting === 1, "the first waits")
    const early = await send(slow)
    expect([early.status, early.headers.get("retry-after")]).toEqual([409, "1"])
    expect(await early.json()).toEqual({
      detail: "Idempotency-Key: the first request with it is still being answered",
    })
    expect((await send({ ...slow, body: completion() })).status).toBe(422)
    leaving.abort()
    const answer = await whole(await first)
    expect(await whole(await send(slow))).toEqual(answer)
    expect(await charges(org)).toBe(1)
  })

  it("sent many times at once is answered once", async () => {
    const { key, org } = await freshOrg()
    const body = completion({ tokens: 3, tokenMs: 5 })
    const statuses = await Promise.all(
      Array.from(
        { length: 12 },
        async () => (await whole(await send({ key, idempotencyKey: "many", body }))).status,
      ),
    )
    expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(1)
    expect(statuses.every((status) => status === 200 || status === 409)).toBe(true)
    expect(await charges(org)).toBe(1)
  })

  it("is free again after a refusal, a failure, or a stream whose reader left", async () => {
    const { key, org } = await freshOrg()
    const refused = { key, idempotencyKey: "free", body: { model: "none", prompt: "x" } }
    expect((await send(refused)).status).toBe(404)
    expect((await send({ ...refused, body: completion() })).status).toBe(200)

    const failing = { key, idempotencyKey: "failed", body: completion({ failAt: 0 }) }
    expect((await send(failing)).status).toBe(500)
    expect((await send(failing)).status).toBe(500)

    const leaving = new AbortController()
    const stream = {
      key,
      idempotencyKey: "left",
      // It waits in its middle for a signal: it has not ended when its reader leaves, however late that is.
      body: completion({ tokens: 50, tokenMs: 5, signalAt: 25 }, { stream: true }),
    }
    const response = await send({ ...stream, signal: leaving.signal })
    await response.body!.getReader().read()
    leaving.abort()
    await untilIdle(node)
    const again = await send(stream)
    process.kill(node.gauges("fake").pid!, "SIGUSR2")
    expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([200, null])
    const text = await again.text()
    expect(text.endsWith("data: [DONE]\n\n")).toBe(true)
    expect(await (await send(stream)).text()).toBe(text)
    // The first request of "free", what the disconnected reader had received, and the whole stream.
    expect(await charges(org)).toBe(3)
  })

  it("is free again after speech without stream whose reader left", async () => {
    const { key, org } = await freshOrg()
    const leaving = new AbortController()
    const asked = {
      key,
      idempotencyKey: "left-speech",
      path: "/v1/audio/speech",
      // Three seconds: a machine that stands still for a moment must not have made all of it when its reader leaves.
      body: { ...speech(), input: spokenScript({ pieces: 60, samples: 2_400, pieceMs: 50 }) },
    }
    const response = await send({ ...asked, signal: leaving.signal })
    await response.body!.getReader().read()
    leaving.abort()
    await untilIdle(node)
    const again = await send(asked)
    expect([again.status, again.headers.get("idempotency-replayed")]).toEqual([200, null])
    const audio = Buffer.from(await again.arrayBuffer())
    expect(audio.length).toBe(60 * 2_400 * 2)
    const replayed = await send(asked)
    expect(replayed.headers.get("idempotency-replayed")).toBe("true")
    expect(Buffer.from(await replayed.arrayBuffer()).equals(audio)).toBe(true)
    // What the disconnected reader had received, and the whole reply.
    expect(await charges(org)).toBe(2)
  })

  it.each(["", " ", "a b", "x".repeat(256), "ä"])("is refused as %j", async (idempotencyKey) => {
    const headers = { authorization: `Bearer ${node.keys.dev}`, "idempotency-key": idempotencyKey }
    const response = await node.fetch("/v1/completions", {
      method: "POST",
      headers,
      body: JSON.stringify(completion()),
    })
    expect(response.status).toBe(400)
    expect(await response.json()).toEqual({
      detail: "Idempotency-Key: must be 1 to 255 visible ASCII characters",
    })
  })
})
