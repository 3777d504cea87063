// The harness against servers whose times are known: what it reports must be what they did. They run in this process and read the same
// clock, so that a busy machine, which makes both late, changes no outcome.
// Its tests wait, so they run at the same time.
import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, describe, expect, it } from "vitest"
import { closeConnections, type Target } from "#harness/client/Exchange.ts"
import { makeClip } from "#harness/data/Clip.ts"
import { sizedPrompts } from "#harness/data/Prompts.ts"
import { percentile } from "#harness/figures/Statistics.ts"
import { parseObjective } from "#harness/load/Objective.ts"
import type { Plan, Plans } from "#harness/Plan.ts"
import { run } from "#harness/Run.ts"
import { figureIn, type Section } from "#harness/report/Result.ts"
import { allRequests } from "#harness/report/Summarize.ts"
import { inLong } from "../support/groups/Runs.ts"
import { figuresIn } from "./report/SectionFigures.ts"
import {
  type Answer,
  chunkOf,
  paced,
  type ScriptedServer,
  scriptedServer,
  sse,
  type Written,
} from "./ScriptedServer.ts"

const chatPath = "/v1/chat/completions"
const speechPath = "/v1/audio/speech"
const transcriptionPath = "/v1/audio/transcriptions"

const text: Plans = {
  text: { model: "m", prompts: sizedPrompts(5, 1), maxTokens: 8, temperature: 0, fields: {} },
}
const speech = (playerBufferMs = 0): Plans => ({
  speech: {
    model: "m",
    voice: "v",
    format: "pcm",
    rateHz: 8_000,
    playerBufferMs,
    fields: {},
    input: () => "hello",
    dataset: "one word",
  },
})

const planFor = (
  target: Target,
  plans: Plans,
  drive: Partial<Plan["drive"]>,
  rest: Partial<Plan> = {},
): Plan => ({
  suite: "test",
  target,
  plans,
  shares: Object.fromEntries(Object.keys(plans).map((kind) => [kind, 1])),
  drive: {
    load: { loop: "closed", clients: 1 },
    warmupMs: 0,
    durationMs: 60_000,
    requests: 10,
    maxInFlight: 1_000,
    drainMs: 20_000,
    seed: 1,
    ...drive,
  },
  objective: undefined,
  ramp: undefined,
  ...rest,
})

const measure = async (plan: Plan): Promise<Section> =>
  (await run({ plan, signal: new AbortController().signal, onProgress: () => {} }))[0]!

const open: Array<ScriptedServer> = []
const serve = async (answers: Readonly<Record<string, Answer>>): Promise<ScriptedServer> => {
  const server = await scriptedServer(answers)
  open.push(server)
  return server
}
afterAll(async () => {
  closeConnections()
  await Promise.all(open.splice(0).map((server) => server.close()))
})

describe.concurrent("a server that stalls", () => {
  const stallMs = 1_500

  /** Answers after `eachMs`, but for a stall that begins with the counted request of this number. */
  const stalling = (from: number, eachMs = 0) => {
    let asked = 0
    /** When the look before the run was answered, the first counted request came, and the stall began; `performance.now()`. */
    const times = { lookedMs: 0, firstMs: 0, stallFromMs: 0 }
    const answer: Answer = async (_, response) => {
      const nth = asked++
      const nowMs = performance.now()
      if (nth === 1) times.firstMs = nowMs
      if (nth === from) times.stallFromMs = nowMs
      // Timers may fire a little early.
      if (nth >= from)
        for (let leftMs = 1; leftMs > 0; ) {
          leftMs = times.stallFromMs + stallMs - performance.now()
          if (leftMs > 0) await sleep(leftMs)
        }
      if (eachMs > 0) await sleep(eachMs)
      sse(response)
      response.end(`${chunkOf({ content: "a" }, { finish_reason: "stop" })}data: [DONE]\n\n`)
      if (nth === 0) times.lookedMs = performance.now()
    }
    return { answer, times }
  }

  it.each([
    ["free", 1_000],
    ["with few requests at a time", 4],
  ])(
    "shows its stall in every request that was due during it, in an open loop, %s",
    async (_, maxInFlight) => {
      const { answer, times } = stalling(20)
      const { target } = await serve({ [chatPath]: answer })
      const point = await measure(
        planFor(target, text, {
          load: { loop: "open", ratePerSecond: 40 },
          durationMs: 4_000,
          requests: 1_000,
          maxInFlight,
        }),
      )
      expect(figuresIn(point, allRequests).failed!.median).toBe(0)
      const first = point.load!.timeline[0]!.atSeconds * 1000
      // The run began after the look and before its first request came: a request was due at the earliest and at the latest then.
      const during = point
        .load!.timeline.map(({ atSeconds, endMs }) => ({
          earliestMs: times.lookedMs + atSeconds * 1000,
          latestMs: times.firstMs - first + atSeconds * 1000,
          endMs: endMs!,
        }))
        .filter(
          ({ earliestMs, latestMs }) =>
            earliestMs > times.stallFromMs && latestMs < times.stallFromMs + stallMs,
        )
      // 40 a second for 1.5 s, where the machine is not busy.
      expect(during.length).toBeGreaterThan(10)
      for (const { endMs, latestMs } of during)
        expect(endMs).toBeGreaterThan(times.stallFromMs + stallMs - latestMs - 1)
      const e2e = figuresIn(point, "text").e2e!
      expect(e2e.p99 / stallMs).toBeGreaterThan(0.85)
      expect(e2e.p95 / stallMs).toBeGreaterThan(0.6)
      expect(figuresIn(point, allRequests)["most in flight"]!.median).toBeLessThanOrEqual(maxInFlight)
    },
  )

  it("hides it in a closed loop, where the only client waits", async () => {
    const { target } = await serve({ [chatPath]: stalling(100, 5).answer })
    const point = await measure(planFor(target, text, { requests: 200 }))
    const { e2e } = figuresIn(point, "text")
    expect(e2e!.max / stallMs).toBeGreaterThan(0.99)
    // The open loop shows more than 0.6.
    expect(e2e!.p95 / stallMs).toBeLessThan(0.3)
  })
})

describe.concurrent("times that are known", () => {
  it("come back as first token, gaps and their longest", async () => {
    const script = { ttftMs: 200, itlMs: 40, tokens: 8, gapMs: 260 }
    const written: Array<Written> = []
    const { target } = await serve({ [chatPath]: paced(script, written) })
    const figures = figuresIn(await measure(planFor(target, text, { requests: 6 })), "text")
    expect(figures.e2e!.readings).toBe(6)
    // What the server did, which on a busy machine is not what it was told. The first was the look before the run.
    const requests = written.slice(1).map(({ askedMs, tokensMs }) => {
      const gaps = tokensMs.slice(1).map((atMs, nth) => atMs - tokensMs[nth]!)
      return { ttftMs: tokensMs[0]! - askedMs, e2eMs: tokensMs.at(-1)! - askedMs, gaps }
    })
    expect(Math.min(...requests.map(({ ttftMs }) => ttftMs))).toBeGreaterThan(script.ttftMs - 2)
    const within = (value: number, done: ReadonlyArray<number>, least: number) => {
      expect(value / percentile(done, 0.5)).toBeGreaterThan(least)
      expect(value / percentile(done, 0.5)).toBeLessThan(3)
    }
    // No client reads a token before it was written; two may come together.
    within(
      figures.ttft!.median,
      requests.map(({ ttftMs }) => ttftMs),
      0.99,
    )
    within(
      figures.e2e!.median,
      requests.map(({ e2eMs }) => e2eMs),
      0.99,
    )
    within(
      figures.itl!.median,
      requests.flatMap(({ gaps }) => gaps),
      0.5,
    )
    within(
      figures.gap!.median,
      requests.map(({ gaps }) => Math.max(...gaps)),
      0.5,
    )
    within(
      figures.tpot!.median,
      requests.map(({ e2eMs, ttftMs }) => (e2eMs - ttftMs) / 7),
      0.5,
    )
    expect(figures.tokens!.mean).toBe(8)
    expect(figures.itl!.readings).toBe(6 * 7)
  })
})

describe.concurrent("speech", () => {
  const rateHz = 8_000
  const pcm = (ms: number, level: number): Buffer => {
    const bytes = Buffer.alloc((2 * rateHz * ms) / 1000)
    for (let at = 0; at < bytes.length; at += 2) bytes.writeInt16LE(level, at)
    return bytes
  }

  /** 100 ms of silence, then 300 ms of sound; then two pauses longer than the audio that was sent. */
  const late =
    (missedMs: Array<number>, soundMs: Array<number>): Answer =>
    async (_, response) => {
      const askedMs = performance.now()
      response.writeHead(200, { "content-type": "audio/pcm" })
      const beganMs = performance.now()
      response.write(pcm(100, 0))
      await sleep(40)
      soundMs.push(performance.now() - askedMs)
      response.write(pcm(300, 9_000))
      await sleep(900)
      const first = performance.now() - beganMs - 400
      response.write(pcm(200, 9_000))
      const resumedMs = performance.now()
      await sleep(700)
      missedMs.push(first + performance.now() - resumedMs - 200)
      response.end(pcm(200, 9_000))
    }

  it("that comes late is an under-run each time, and a buffer hides what it can", inLong, async () => {
    /** How long the audio was late in each request, by the server's clock; 540 and 500 ms where the machine is not busy. */
    const missedMs: Array<number> = []
    /** How long after the request the sound was sent. */
    const soundMs: Array<number> = []
    const { target } = await serve({ [speechPath]: late(missedMs, soundMs) })
    const figures = figuresIn(await measure(planFor(target, speech(), { requests: 3 })), "speech")
    expect(figures.underruns!.median).toBe(2)
    // The first request was the look before the run.
    const expectedMs = percentile(missedMs.slice(1), 0.5)
    expect(expectedMs).toBeGreaterThan(1_030)
    expect(figures.starved!.median / expectedMs).toBeGreaterThan(0.9)
    expect(figures.starved!.median / expectedMs).toBeLessThan(1.3)
    expect(figures.audio!.mean).toBeCloseTo(0.8, 6)
    expect(figures.rtf!.median).toBeGreaterThan(2)
    // The silence before the sound counts: no client hears it before it was sent.
    expect(figures.first_sound!.median / percentile(soundMs.slice(1), 0.5)).toBeGreaterThan(0.99)
    const buffered = figuresIn(await measure(planFor(target, speech(800), { requests: 2 })), "speech")
    expect(buffered.underruns!.max).toBe(0)
  })

  it("may come as server-sent events", async () => {
    const { target } = await serve({
      [speechPath]: (_, response) => {
        sse(response)
        const audio = pcm(250, 9_000).toString("base64")
        const event = `data: ${JSON.stringify({ type: "speech.audio.delta", audio })}\n\n`
        response.end(`${event}${event}data: {"type":"speech.audio.done"}\n\n`)
      },
    })
    const figures = figuresIn(await measure(planFor(target, speech(), { requests: 2 })), "speech")
    expect(figures.audio!.mean).toBeCloseTo(0.5, 6)
  })
})

describe.concurrent("transcriptions", () => {
  const clips = [
    makeClip("a", new Int16Array(16_000), "One two three four."),
    makeClip("b", new Int16Array(32_000), "five six seven eight nine ten"),
  ]
  const plans = (stream: boolean): Plans => ({
    transcription: { model: "m", clips, dataset: "two", language: "en", fields: {}, stream },
  })

  /** Two of the four words of the first clip are wrong, none of the second's six. */
  const heard = (body: Buffer): string =>
    body.includes('filename="a.wav"') ? "one, too, three!" : "Five six seven eight, nine ten."

  it("give the word errors of known texts, and the form has what a server needs", async () => {
    const bodies: Array<Buffer> = []
    const { target } = await serve({
      [transcriptionPath]: (_, response, body) => {
        bodies.push(body)
        response
          .writeHead(200, { "content-type": "application/json" })
          .end(JSON.stringify({ text: heard(body) }))
      },
    })
    const figures = figuresIn(await measure(planFor(target, plans(false), { requests: 4 })), "transcription")
    expect(figures["word errors over all words"]!.median).toBeCloseTo(2 / 10, 6)
    expect(figures.wer!.max).toBe(0.5)
    expect(figures.audio!.mean).toBe(1.5)
    const form = bodies[1]!.toString("latin1")
    for (const [name, value] of [
      ["model", "m"],
      ["language", "en"],
      ["response_format", "json"],
    ])
      expect(form).toContain(`name="${name}"\r\n\r\n${value}\r\n`)
    expect(form).toContain("RIFF")
  })

  it("as events have a first text", async () => {
    const { target } = await serve({
      [transcriptionPath]: async (_, response, body) => {
        sse(response)
        response.write(
          `data: ${JSON.stringify({ type: "transcript.text.delta", delta: heard(body) })}\r\n\r\n`,
        )
        // In pieces: where this process stands still, one of them passes, and the client reads before the next.
        for (let piece = 0; piece < 30; piece++) await sleep(10)
        response.end(`data: ${JSON.stringify({ type: "transcript.text.done", text: heard(body) })}\n\n`)
      },
    })
    const figures = figuresIn(await measure(planFor(target, plans(true), { requests: 4 })), "transcription")
    expect(figures["word errors over all words"]!.median).toBeCloseTo(0.2, 6)
    expect(figures.final!.median - figures.ttft!.median).toBeGreaterThan(250)
  })
})

it.concurrent("goodput is the share of requests within the objective", async () => {
  let nth = 0
  // One in four is wrong, and not the look before the run.
  const { target } = await serve({
    [transcriptionPath]: (_, response) =>
      response
        .writeHead(200, { "content-type": "application/json" })
        .end(JSON.stringify({ text: nth++ % 4 === 3 ? "one" : "one two three four" })),
  })
  const plans: Plans = {
    transcription: {
      model: "m",
      clips: [makeClip("a", new Int16Array(1_600), "One two three four.")],
      dataset: "one",
      language: "en",
      fields: {},
      stream: false,
    },
  }
  const objective = parseObjective("wer_p50<10%")
  const point = await measure(planFor(target, plans, { requests: 12 }, { objective }))
  expect(figuresIn(point, allRequests).goodput!.median).toBe(9 / 12)
  expect(point.parts[0]!.notes).toEqual([])
})

describe.concurrent("a ramp", () => {
  it("finds the number of clients that a server with few places serves in time", inLong, async () => {
    const places = 4
    let busy = 0
    const waiting: Array<() => void> = []
    const { target } = await serve({
      [chatPath]: async (...all) => {
        while (busy >= places) await new Promise<void>((resolve) => waiting.push(resolve))
        busy++
        await paced({ ttftMs: 400, itlMs: 1, tokens: 2 })(...all)
        busy--
        waiting.shift()?.()
      },
    })
    const plan = planFor(
      target,
      text,
      { load: { loop: "closed", clients: 1 }, durationMs: 3_600, requests: 1_000 },
      { objective: parseObjective("ttft_p50<640ms"), ramp: { most: 64, trials: 12, precision: 1.01 } },
    )
    const sections = await run({ plan, signal: new AbortController().signal, onProgress: () => {} })
    const knee = (name: string) => figureIn(sections.at(-1), "The knee", name)
    const held = knee("highest load that held the objective")
    expect(held!.unit).toBe("clients")
    expect(held!.median).toBeGreaterThanOrEqual(3)
    expect(held!.median).toBeLessThanOrEqual(6)
    expect(knee("lowest load that did not")!.median! - held!.median!).toBe(1)
    expect(sections.length).toBeGreaterThan(4)
  })
})
