// The harness against servers whose times are known: what it reports must be what they did.
// Its tests wait, so they run at the same time.
import { setTimeout as sleep } from "node:timers/promises"
import { afterAll, describe, expect, it } from "vitest"
import { closeConnections, type Target } from "#harness/client/Exchange.ts"
import { makeClip } from "#harness/data/Clip.ts"
import { sizedPrompts } from "#harness/data/Prompts.ts"
import { parseObjective } from "#harness/load/Objective.ts"
import type { Plan, Plans } from "#harness/Plan.ts"
import { run } from "#harness/Run.ts"
import { figureIn, type Section } from "#harness/report/Result.ts"
import { allRequests } from "#harness/report/Summarize.ts"
import { inLong } from "../support/groups/Runs.ts"
import { figuresIn } from "./report/SectionFigures.ts"
import { type Answer, chunkOf, paced, type ScriptedServer, scriptedServer, sse } from "./ScriptedServer.ts"

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
  const stallAfterMs = 500

  /** Answers after `eachMs`, but for a stall that begins some time after the first counted request. */
  const stalling = (eachMs = 0) => {
    let stallFromMs: number | undefined
    let isFirst = true
    const answer: Answer = async (_, response) => {
      // The first request is the look before the run.
      if (isFirst) isFirst = false
      else stallFromMs ??= performance.now() + stallAfterMs
      const from = stallFromMs ?? Number.POSITIVE_INFINITY
      const nowMs = performance.now()
      if (nowMs >= from && nowMs < from + stallMs) await sleep(from + stallMs - nowMs)
      if (eachMs > 0) await sleep(eachMs)
      sse(response)
      response.end(`${chunkOf({ content: "a" }, { finish_reason: "stop" })}data: [DONE]\n\n`)
    }
    return answer
  }

  it.each([
    ["free", 1_000],
    ["with few requests at a time", 4],
  ])(
    "shows its stall in every request that was due during it, in an open loop, %s",
    async (_, maxInFlight) => {
      const { target } = await serve({ [chatPath]: stalling() })
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
      const during = point.load!.timeline.filter(
        ({ atSeconds }) =>
          atSeconds * 1000 > first + stallAfterMs + 100 && atSeconds * 1000 < first + stallAfterMs + stallMs,
      )
      // 40 a second for 1.4 s.
      expect(during.length).toBeGreaterThan(30)
      for (const { atSeconds, endMs } of during) {
        const leftMs = first + stallAfterMs + stallMs - atSeconds * 1000
        expect(endMs! / leftMs).toBeGreaterThan(0.9)
      }
      const e2e = figuresIn(point, "text").e2e!
      expect(e2e.p99 / stallMs).toBeGreaterThan(0.85)
      expect(e2e.p95 / stallMs).toBeGreaterThan(0.6)
      expect(figuresIn(point, allRequests)["most in flight"]!.median).toBeLessThanOrEqual(maxInFlight)
    },
  )

  it("hides it in a closed loop, where the only client waits", async () => {
    const { target } = await serve({ [chatPath]: stalling(5) })
    const point = await measure(planFor(target, text, { durationMs: 3_000, requests: 100_000 }))
    const { e2e } = figuresIn(point, "text")
    expect(e2e!.max / stallMs).toBeGreaterThan(0.85)
    // The open loop shows more than 0.6.
    expect(e2e!.p95 / stallMs).toBeLessThan(0.3)
  })
})

describe.concurrent("times that are known", () => {
  it("come back as first token, gaps and their longest", async () => {
    const script = { ttftMs: 200, itlMs: 40, tokens: 8, gapMs: 260 }
    const { target } = await serve({ [chatPath]: paced(script) })
    const figures = figuresIn(await measure(planFor(target, text, { requests: 6 })), "text")
    expect(figures.e2e!.readings).toBe(6)
    const within = (value: number, expected: number) => {
      expect(value / expected).toBeGreaterThan(0.9)
      expect(value / expected).toBeLessThan(1.5)
    }
    within(figures.ttft!.median, script.ttftMs)
    within(figures.itl!.median, script.itlMs)
    within(figures.gap!.median, script.itlMs + script.gapMs)
    const wholeMs = script.ttftMs + 7 * script.itlMs + script.gapMs
    within(figures.e2e!.median, wholeMs)
    within(figures.tpot!.median, (wholeMs - script.ttftMs) / 7)
    expect(figures.tokens!.mean).toBe(8)
    expect(figures.itl!.readings).toBe(6 * 7)
  })

  it("goodput is the share of requests within the objective", async () => {
    let nth = 0
    const slow = paced({ ttftMs: 600, itlMs: 1, tokens: 2 })
    const fast = paced({ ttftMs: 1, itlMs: 1, tokens: 2 })
    // One in four, and not the look before the run.
    const { target } = await serve({ [chatPath]: (...all) => (nth++ % 4 === 3 ? slow : fast)(...all) })
    const objective = parseObjective("ttft_p50<400ms")
    const point = await measure(planFor(target, text, { requests: 12 }, { objective }))
    expect(figuresIn(point, allRequests).goodput!.median).toBe(9 / 12)
    expect(point.parts[0]!.notes).toEqual([])
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
  const late: Answer = async (_, response) => {
    response.writeHead(200, { "content-type": "audio/pcm" })
    response.write(pcm(100, 0))
    await sleep(40)
    response.write(pcm(300, 9_000))
    await sleep(900)
    response.write(pcm(200, 9_000))
    await sleep(700)
    response.end(pcm(200, 9_000))
  }

  it("that comes late is an under-run each time, and a buffer hides what it can", inLong, async () => {
    const { target } = await serve({ [speechPath]: late })
    const figures = figuresIn(await measure(planFor(target, speech(), { requests: 3 })), "speech")
    expect(figures.underruns!.median).toBe(2)
    // 400 ms of audio against 940, then 200 against 700.
    const expectedMs = 540 + 500
    expect(figures.starved!.median / expectedMs).toBeGreaterThan(0.9)
    expect(figures.starved!.median / expectedMs).toBeLessThan(1.3)
    expect(figures.audio!.mean).toBeCloseTo(0.8, 6)
    expect(figures.rtf!.median).toBeGreaterThan(2)
    // The silence before the sound counts.
    expect(figures.first_sound!.median - figures.first_byte!.median).toBeGreaterThan(25)
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
        await sleep(300)
        response.end(`data: ${JSON.stringify({ type: "transcript.text.done", text: heard(body) })}\n\n`)
      },
    })
    const figures = figuresIn(await measure(planFor(target, plans(true), { requests: 4 })), "transcription")
    expect(figures["word errors over all words"]!.median).toBeCloseTo(0.2, 6)
    expect(figures.final!.median - figures.ttft!.median).toBeGreaterThan(250)
  })
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
        await paced({ ttftMs: 100, itlMs: 1, tokens: 2 })(...all)
        busy--
        waiting.shift()?.()
      },
    })
    const plan = planFor(
      target,
      text,
      { load: { loop: "closed", clients: 1 }, durationMs: 900, requests: 1_000 },
      { objective: parseObjective("ttft_p50<160ms"), ramp: { most: 64, trials: 12, precision: 1.01 } },
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
