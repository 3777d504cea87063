// The harness in conversations with servers whose times are known: what it reports must be what they did. They run in this process and
// read the same clock, so that a busy machine, which makes both late, changes no outcome.
// Its tests wait, so they run at the same time.
import { afterAll, describe, expect, it } from "vitest"
import { Resampler } from "#audio/Resampler.ts"
import { bytesToS16 } from "#domain/audio/Audio.ts"
import { wavLayout } from "#harness/client/AudioReply.ts"
import { closeConnections } from "#harness/client/Exchange.ts"
import type { ConversationPlan } from "#harness/conversation/Conversations.ts"
import { percentile } from "#harness/figures/Statistics.ts"
import type { Plan } from "#harness/Plan.ts"
import { run } from "#harness/Run.ts"
import { figureIn } from "#harness/report/Result.ts"
import { allRequests } from "#harness/report/Summarize.ts"
import { figuresIn } from "../report/SectionFigures.ts"
import {
  clipOf,
  rateHz,
  type Script,
  type ScriptedConversation,
  scriptedConversation,
} from "./ScriptedConversation.ts"

const open: Array<ScriptedConversation> = []
afterAll(async () => {
  closeConnections()
  await Promise.all(open.splice(0).map((server) => server.close()))
})

const serve = async (script: Script): Promise<ScriptedConversation> => {
  const server = await scriptedConversation(script)
  open.push(server)
  return server
}

const conversation: ConversationPlan = {
  model: "m",
  turns: { type: "server_vad", silence_duration_ms: 200 },
  voice: undefined,
  instructions: undefined,
  transcriptionModel: "t",
  language: undefined,
  maxTokens: 8,
  pieceMs: 20,
  clips: [clipOf("a", 200), clipOf("b", 300)],
  dataset: "tones",
  turnsEach: 100,
  interrupt: 0,
  compare: 0,
}

const measure = (
  server: ScriptedConversation,
  more: Partial<ConversationPlan> = {},
  requests = 2,
  clients = 1,
) => {
  const plan: Plan = {
    suite: "conversation",
    target: server.target,
    plans: { conversation: { ...conversation, ...more } },
    shares: { conversation: 1 },
    drive: {
      load: { loop: "closed", clients },
      warmupMs: 0,
      durationMs: 60_000,
      requests,
      maxInFlight: 1,
      drainMs: 10_000,
      seed: 1,
    },
    objective: undefined,
    ramp: undefined,
  }
  return run({ plan, signal: new AbortController().signal, onProgress: () => {} })
}

const figuresOf = async (...asked: Parameters<typeof measure>) => {
  const [section] = await measure(...asked)
  expect(section!.parts[0]!.notes).toEqual([])
  return figuresIn(section, "conversation")
}

describe.concurrent("voice to voice", () => {
  it("is the silence, the server's time and the silence at the beginning of the answer", async () => {
    const leadMs = 150
    const server = await serve({ delayMs: () => 250, leadMs })
    const beganMs = performance.now()
    const figures = await figuresOf(server)
    const allMs = performance.now() - beganMs
    // What the server did, which on a busy machine is not what it was told. The first turn was the look before the load.
    const turns = server.turns.slice(1)
    const whole = percentile(
      turns.map(({ heardMs, sentMs }) => sentMs - heardMs + leadMs),
      0.5,
    )
    // 600 where the machine is not busy. Of the silence, which is heard in samples, less time may be left when it is read late.
    expect(whole).toBeGreaterThan(395)
    // Nothing is heard before it was sent, or ends after it was read. Without one of the three parts a figure is at most 0.75 of this.
    const [spoken, beyond, stopped] = [
      figures.voice_to_voice!.median,
      figures.beyond_silence!.median,
      figures.stop_to_sound!.median,
    ]
    for (const [value, least] of [
      [spoken, whole],
      [beyond, whole - 200],
      [stopped, 400],
    ] as const)
      expect(value / least).toBeGreaterThan(0.99)
    // The look and two turns: no figure is longer than the turns took.
    expect(spoken).toBeLessThan(allMs)
    // Figures have six digits.
    expect(beyond).toBeCloseTo(spoken - 200, 1)
    expect(stopped).toBeLessThan(spoken)
    expect(figures.tokens!.median).toBe(4)
    expect(figures.prompt_tokens!.median).toBe(5)
    expect(figures.audio!.median).toBeCloseTo(0.35)
    expect(figures.early_ends!.max).toBe(0)
    expect(figures.order_errors!.max).toBe(0)
    expect(figures.wer!.max).toBe(0)
  })

  it("shows a stall of one turn", async () => {
    const stallMs = 1_200
    const server = await serve({ delayMs: (turn) => (turn === 1 ? stallMs : 50) })
    const { max, median } = (await figuresOf(server, {}, 3)).voice_to_voice!
    // What the server did: on a busy machine the other turns are late, too. The first turn of all was the look before the load.
    const turnsMs = server.turns.slice(1).map(({ heardMs, sentMs }) => sentMs - heardMs)
    const longestMs = Math.max(...turnsMs)
    expect(longestMs).toBeGreaterThan(stallMs)
    expect(max / longestMs).toBeGreaterThan(0.99)
    expect(median / percentile(turnsMs, 0.5)).toBeGreaterThan(0.99)
    expect(median).toBeLessThan(max)
  })

  it("from a commit, where the client ends the turns", async () => {
    const server = await serve({ delayMs: () => 300 })
    const beganMs = performance.now()
    const figures = await figuresOf(server, { turns: { type: "none" } })
    const allMs = performance.now() - beganMs
    const done = percentile(
      server.turns.slice(1).map(({ askedMs, sentMs }) => sentMs - askedMs),
      0.5,
    )
    expect(figures.commit_to_sound!.median / done).toBeGreaterThan(0.99)
    expect(figures.commit_to_sound!.median).toBeLessThan(allMs)
    expect(figures.beyond_silence).toBeUndefined()
    expect(server.types.slice(0, 4)).toEqual([
      "session.update",
      "input_audio_buffer.append",
      "input_audio_buffer.commit",
      "response.create",
    ])
  })

  it("counts turns that the server ended before the speech was over", async () => {
    // A pause of two seconds in the speech, and a server that waits for 200 ms. The second part is so long that its beginning is noticed
    // before its end also by a client that stands still for a while: until then the answer to the first part is one to the whole.
    const whole = clipOf("pause", 4_650)
    whole.samples.fill(0, 6_000, 38_000)
    // The answer to the first part is sent whole before the second part interrupts it.
    const server = await serve({ delayMs: () => 20, answerMs: () => 90 })
    const figures = await figuresOf(server, { clips: [whole] })
    // Where the machine is so busy that the answer to the first part comes after the second one, the end of that is read in the next turn.
    expect(figures.early_ends!.max).toBeGreaterThanOrEqual(1)
    expect(figures.voice_to_voice!.readings).toBe(2)
  })
})

describe.concurrent("interruptions", () => {
  // So far ahead that the old answer is being played when it is interrupted, also where this process stands still for seconds.
  const aheadMs = 15_000

  it("stop the old answer", async () => {
    const answerMs = 30_000
    // The last one is not interrupted.
    const server = await serve({
      aheadMs,
      delayMs: () => 20,
      answerMs: (turn) => (turn === 4 ? 200 : answerMs),
    })
    const figures = await figuresOf(server, { interrupt: 1 }, 4)
    // The first turn of a conversation interrupts nothing.
    expect(figures.interrupt_stop!.readings).toBe(3)
    expect(figures.interrupt_stop!.max).toBeLessThan(answerMs / 2)
    expect(figures.late_audio!.max).toBe(0)
    expect(server.types).toContain("conversation.item.truncate")
  })

  it("show audio that comes after them", async () => {
    const figures = await figuresOf(
      await serve({
        aheadMs,
        delayMs: () => 20,
        answerMs: (turn) => (turn === 3 ? 200 : 30_000),
        latePieces: 3,
      }),
      { interrupt: 1 },
      3,
    )
    expect(figures.late_audio!.max).toBe(3)
    expect(figures.late_audio!.readings).toBe(2)
  })
})

describe.concurrent("events out of order", () => {
  it("are counted", async () => {
    const twice = (events: ReadonlyArray<object>) => {
      const part = events.findIndex((event) => "type" in event && event.type === "response.content_part.done")
      return part < 0 ? events : [...events.slice(0, part + 1), ...events.slice(part)]
    }
    const figures = await figuresOf(await serve({ delayMs: () => 20, edit: twice }))
    expect(figures.order_errors!.mean).toBe(1)
  })
})

describe.concurrent("transcripts", () => {
  it("are compared with those of files with exactly the audio that the server heard", async () => {
    const server = await serve({ delayMs: () => 20, transcript: "one two", fileTranscript: "one too" })
    const result = await measure(server, { compare: 2 })
    expect(result.at(-1)).toMatchObject({
      name: "transcripts",
      parts: [
        {
          figures: [{ name: "equal", unit: "of 2", median: 0 }],
          notes: ['"one two" instead of "one too"', '"one two" instead of "one too"'],
        },
      ],
    })
    for (const [nth, upload] of server.uploads.entries()) {
      const wav = upload.subarray(upload.indexOf("RIFF"))
      const end = wav.indexOf("\r\n--")
      const samples = bytesToS16(wav.subarray(wavLayout(wav)!.at, end))
      // The first turn was the look at the server before the load.
      const heard = new Resampler(rateHz, 16_000).push(server.heard[nth + 1]!)
      // The filter of this test begins with nothing where the conversation's had the audio before.
      const inside = (all: Int16Array) => [...all.subarray(200, heard.length - 200)]
      expect(Math.abs(samples.length - (server.heard[nth + 1]!.length * 2) / 3)).toBeLessThanOrEqual(1)
      expect(inside(samples)).toEqual(inside(heard))
    }
    expect(server.uploads).toHaveLength(2)
  })

  it("that a server has no endpoint for are not compared", async () => {
    const server = await serve({ delayMs: () => 20 })
    server.uploads.push = () => {
      throw new Error("no such endpoint")
    }
    const transcripts = (await measure(server, { compare: 2 })).at(-1)
    expect(figureIn(transcripts, "Transcripts of turns", "equal")).toMatchObject({ unit: "of 0", median: 0 })
    expect(transcripts?.cautions).toEqual([expect.stringContaining("the comparison ended early")])
  })
})

it.concurrent("conversations are closed after their turns, and each client has its own", async () => {
  const server = await serve({ delayMs: () => 20 })
  const [section] = await measure(server, { turnsEach: 2 }, 6, 2)
  expect(figureIn(section, allRequests, "most in flight")!.median).toBe(2)
  // One before the load; the clients stop after 6 turns, in the middle of a conversation or not.
  expect(server.sessions).toBeGreaterThanOrEqual(4)
  expect(server.sessions).toBeLessThanOrEqual(5)
})

describe.concurrent("a server that", () => {
  const why = async (script: Script) => {
    const server = await serve(script)
    return measure(server).then(
      () => "no failure",
      (cause: Error) => cause.message,
    )
  }

  it("never answers", async () => {
    // Long enough for the client to connect and to speak, also where this process stands still for seconds.
    expect(await why({ delayMs: () => 600_000, timeoutMs: 20_000 })).toBe(
      "the first conversation request failed: no audible answer to the speech",
    )
  })

  it("closes the conversation", async () => {
    // With the reason, unless the close came with the answer to the handshake.
    expect(await why({ delayMs: () => 0, onSession: (socket) => socket.close(1011, "no engine") })).toMatch(
      /^the first conversation request failed: the conversation was closed/,
    )
  })

  it("sends an error", async () => {
    const onSession: Script["onSession"] = (socket) =>
      socket.send('{"type":"error","error":{"message":"no such model"}}')
    expect(await why({ delayMs: () => 0, onSession })).toBe(
      "the first conversation request failed: no such model",
    )
  })

  it("sends what is no JSON", async () => {
    expect(await why({ delayMs: () => 0, onSession: (socket) => socket.send("hello") })).toBe(
      "the first conversation request failed: a frame that is not JSON",
    )
  })
})
