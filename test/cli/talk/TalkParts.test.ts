// The parts of `edgewise talk`: what is printed, what is played, sound from a pipe.
import { PassThrough } from "node:stream"
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { Loudspeaker } from "#cli/talk/Loudspeaker.ts"
import { PipeSound } from "#cli/talk/PipeSound.ts"
import { TalkLines } from "#cli/talk/TalkLines.ts"
import { s16ToBytes } from "#domain/audio/Audio.ts"
import type { RequestFailed } from "#harness/client/Failures.ts"
import { wavOf } from "#harness/data/Clip.ts"

describe("TalkLines", () => {
  const events: ReadonlyArray<readonly [number, Readonly<Record<string, unknown>>]> = [
    [0, { type: "input_audio_buffer.speech_started" }],
    [1_000, { type: "input_audio_buffer.speech_stopped" }],
    [
      1_030,
      {
        type: "conversation.item.input_audio_transcription.completed",
        transcript: " Hello\u001b[2J there. ",
      },
    ],
    [1_031, { type: "response.created" }],
    [1_040, { type: "response.output_audio_transcript.delta", delta: "Good " }],
    [1_052, { type: "response.output_audio.delta", delta: "" }],
    [1_100, { type: "response.output_audio_transcript.delta", delta: "day." }],
    [1_200, { type: "response.output_audio.delta", delta: "" }],
  ]
  const printed = (last: object, json = false): string => {
    let text = ""
    const lines = new TalkLines((more) => {
      text += more
    }, json)
    for (const [atMs, event] of events) lines.see(event, atMs)
    lines.see({ type: "response.done", response: last }, 1_300)
    lines.see(
      { type: "response.latency", silence_ms: 500, transcript_ms: 8.6, first_token_ms: null, prepared: true },
      1_301,
    )
    lines.heard(612.4)
    return text
  }

  it("says who speaks, what, and how long each step took; control characters are visible", () => {
    expect(printed({ status: "completed" })).toBe(
      [
        "you     …",
        "you     Hello␛[2J there.",
        "answer  Good day.",
        "        transcript 30 ms, answer 31 ms, text 40 ms, audio 52 ms after the turn",
        "        on the node: silence 500 ms, transcript 9 ms; prepared in the silence",
        "        voice to voice 612 ms",
        "",
      ].join("\n"),
    )
  })

  it("says why an answer ended early", () => {
    expect(printed({ status: "cancelled", status_details: { reason: "turn_detected" } })).toContain(
      "answer  Good day.\n        (cancelled: turn_detected)\n",
    )
    expect(printed({ status: "failed", status_details: { error: { message: "no voice" } } })).toContain(
      "(failed: no voice)",
    )
  })

  it("is a document a line with --json", () => {
    const documents = printed({ status: "completed" }, true)
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line))
    expect(documents).toEqual([
      { type: "speech_started" },
      { type: "user", text: "Hello\u001b[2J there." },
      {
        type: "answer",
        text: "Good day.",
        status: "completed",
        ledger: { transcript_ms: 30, answer_ms: 31, text_ms: 40, audio_ms: 52 },
      },
      {
        type: "latency",
        silence_ms: 500,
        transcript_ms: 8.6,
        first_token_ms: null,
        first_clause_ms: null,
        first_samples_ms: null,
        first_sent_ms: null,
        prepared: true,
      },
      { type: "heard", voice_to_voice_ms: 612 },
    ])
  })
})

const ramp = (from: number, count: number): Int16Array =>
  Int16Array.from({ length: count }, (_, at) => from + at)

describe("Loudspeaker", () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  it("plays answers in real time, silence between them, and nothing of an interrupted one", () => {
    const played: Array<number> = []
    const loudspeaker = new Loudspeaker((samples) => void played.push(...samples))
    loudspeaker.start()
    vi.advanceTimersByTime(40)
    loudspeaker.play(ramp(1, 700))
    loudspeaker.play(ramp(701, 700))
    vi.advanceTimersByTime(40)
    loudspeaker.silence()
    vi.advanceTimersByTime(20)
    loudspeaker.stop()
    expect(played).toEqual([...new Int16Array(960), ...ramp(1, 960), ...new Int16Array(480)])
  })
})

describe("PipeSound", () => {
  const sourceOf = (rawRateHz = 24_000) => {
    const input = new PassThrough()
    const failures: Array<RequestFailed> = []
    return { input, failures, source: new PipeSound(input, rawRateHz, (failure) => failures.push(failure)) }
  }
  const turn = () => new Promise((resolve) => setImmediate(resolve))

  it("takes raw samples as they come, cut anywhere, and fills the last piece with silence", async () => {
    const { failures, input, source } = sourceOf()
    const bytes = s16ToBytes(ramp(1, 700))
    input.write(bytes.subarray(0, 5))
    await turn()
    expect(source.take(480)).toBeUndefined()
    input.write(bytes.subarray(5))
    await turn()
    expect(source.take(480)).toEqual(ramp(1, 480))
    expect(source.take(480)).toBeUndefined()
    expect(source.isOver()).toBe(false)
    input.end()
    await turn()
    expect(source.take(480)).toEqual(Int16Array.from([...ramp(481, 220), ...new Int16Array(260)]))
    expect(source.isOver()).toBe(true)
    expect(failures).toEqual([])
  })

  it("reads the rate from a WAV header", async () => {
    const { input, source } = sourceOf(8_000)
    input.end(wavOf(ramp(1, 500), 24_000))
    await turn()
    expect(source.take(500)).toEqual(ramp(1, 500))
  })

  it("brings other rates to 24 kHz", async () => {
    const { input, source } = sourceOf(16_000)
    input.end(s16ToBytes(new Int16Array(16_000).fill(1_000)))
    await turn()
    const second = source.take(24_000)!
    expect(second[12_000]).toBeGreaterThan(990)
    expect(second[12_000]).toBeLessThan(1_010)
  })

  it("reads two seconds ahead, then makes the writer wait", async () => {
    const { input, source } = sourceOf()
    for (let second = 0; second < 10; second++) input.write(s16ToBytes(new Int16Array(24_000)))
    await turn()
    let taken = 0
    while (source.take(480) !== undefined) taken += 480
    expect(taken).toBeLessThanOrEqual(4 * 24_000)
    await turn()
    expect(source.take(480)).toBeDefined()
  })

  it.each([
    ["two channels", () => Buffer.from(wavOf(ramp(1, 50), 24_000)).fill(2, 22, 23), "2 channels"],
    ["nothing", () => Buffer.alloc(0), "ended before any sound"],
    ["another format", () => Buffer.concat([Buffer.from("RIFF1234NOPE"), Buffer.alloc(50)]), "no WAV"],
    ["a rate of 1 Hz", () => Buffer.from(wavOf(ramp(1, 50), 1)), "1 samples a second"],
  ])("refuses %s in one sentence", async (_, bytes, why) => {
    const { failures, input, source } = sourceOf()
    input.end(bytes())
    await turn()
    expect(failures.map(({ message }) => message).join()).toContain(why)
    expect(source.isOver()).toBe(true)
  })
})
