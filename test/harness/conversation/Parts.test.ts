// The parts of a conversation's client: microphone, loudspeaker, where speech is, orders of events.
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest"
import { EventOrders } from "#harness/conversation/EventOrders.ts"
import { Microphone } from "#harness/conversation/Microphone.ts"
import { AnswerAudio, Playback } from "#harness/conversation/Playback.ts"
import { Session } from "#harness/conversation/Session.ts"
import { speechSpan } from "#harness/conversation/SpeechSpan.ts"
import { tone } from "./ScriptedConversation.ts"

const joined = (...parts: ReadonlyArray<Int16Array>): Int16Array =>
  Int16Array.from(parts.flatMap((part) => [...part]))

describe("speechSpan", () => {
  it("finds the first and the last sample of speech to a quarter of a wave", () => {
    const clip = joined(new Int16Array(2_410), tone(500), new Int16Array(7_000))
    const { first, last } = speechSpan(clip, 24_000)!
    expect(first - 2_410).toBeGreaterThanOrEqual(0)
    expect(first - 2_410).toBeLessThan(20)
    expect(2_410 + 12_000 - last).toBeGreaterThan(0)
    expect(2_410 + 12_000 - last).toBeLessThan(20)
  })

  it("leaves noise out that is 40 dB quieter", () => {
    const clip = joined(tone(300, 24_000, 100), tone(500, 24_000, 10_000), tone(300, 24_000, 100))
    const { first, last } = speechSpan(clip, 24_000)!
    expect(Math.abs(first - 7_200)).toBeLessThan(20)
    expect(Math.abs(last - 19_200)).toBeLessThan(20)
  })

  it("finds none in silence", () => {
    expect(speechSpan(new Int16Array(24_000), 24_000)).toBeUndefined()
    expect(speechSpan(new Int16Array(0), 24_000)).toBeUndefined()
  })
})

describe("Microphone", () => {
  beforeEach(() => void vi.useFakeTimers())
  afterEach(() => void vi.useRealTimers())

  const listen = (isOpen: boolean) => {
    const pieces: Array<Int16Array> = []
    const microphone = new Microphone({ pieceMs: 20, isOpen, send: (samples) => void pieces.push(samples) })
    microphone.start()
    return { microphone, pieces }
  }

  it("sends what was spoken, in real time, also after the process was late", () => {
    const { microphone, pieces } = listen(true)
    vi.advanceTimersByTime(1_000)
    expect(pieces).toHaveLength(50)
    // The process did nothing for half a second: timers that were due run once.
    vi.setSystemTime(Date.now() + 500)
    const now = performance.now()
    vi.spyOn(performance, "now").mockImplementation(() => now + 500)
    vi.advanceTimersToNextTimer()
    expect(pieces.length).toBeGreaterThanOrEqual(75)
    expect(pieces.length).toBeLessThanOrEqual(77)
    vi.restoreAllMocks()
    microphone.stop()
  })

  it("says a clip from the next piece on, and knows afterwards what was sent", () => {
    const { microphone, pieces } = listen(true)
    vi.advanceTimersByTime(100)
    const said = vi.fn(() => expect(pieces).toHaveLength(5 + 3))
    const at = microphone.say(tone(50), said)
    expect(at).toBe(5 * 480)
    vi.advanceTimersByTime(100)
    expect(said).toHaveBeenCalledTimes(1)
    expect(joined(...pieces)).toEqual(microphone.sent(0, 10 * 480))
    const spoken = microphone.sent(at, at + 1_200)
    for (const [nth, sample] of tone(50).entries())
      expect(Math.abs(spoken[nth]! - sample)).toBeLessThanOrEqual(10)
    microphone.stop()
  })

  it("sends only speech where the client ends the turns", () => {
    const { microphone, pieces } = listen(false)
    vi.advanceTimersByTime(100)
    const at = microphone.say(tone(50), () => {})
    vi.advanceTimersByTime(200)
    expect(joined(...pieces)).toEqual(microphone.sent(at, microphone.endOf(at, 1_200)))
    microphone.stop()
  })
})

describe("Playback", () => {
  it("plays what arrives behind what is being played, and knows when the first sound is heard", () => {
    const playback = new Playback(1_000)
    const answer = new AnswerAudio()
    playback.arrived(answer, new Int16Array(100), 1_000)
    playback.arrived(
      answer,
      Int16Array.from({ length: 100 }, (_, at) => (at < 50 ? 300 : 400)),
      1_010,
    )
    expect(answer.soundAtMs).toBe(1_150)
    expect(playback.endsAtMs).toBe(1_200)
    expect(playback.playedMs(answer, 1_120)).toBe(120)
    playback.stop(1_120)
    expect(playback.isPlaying(1_120)).toBe(false)
  })

  it("starts again after it ran out", () => {
    const playback = new Playback(1_000)
    const answer = new AnswerAudio()
    playback.arrived(answer, new Int16Array(100), 0)
    playback.arrived(answer, new Int16Array(100).fill(9_000), 500)
    expect(answer.soundAtMs).toBe(500)
    expect(playback.endsAtMs).toBe(600)
    expect(playback.playedMs(answer, 550)).toBe(150)
  })
})

describe("EventOrders", () => {
  const usage = { input_token_details: {}, output_token_details: {} }
  const ids = { response_id: "r", item_id: "a", content_index: 0 }
  const item = { id: "a" }
  const good: ReadonlyArray<Readonly<Record<string, unknown>>> = [
    { type: "session.created" },
    { type: "input_audio_buffer.speech_started", item_id: "u" },
    { type: "input_audio_buffer.speech_stopped", item_id: "u" },
    { type: "input_audio_buffer.committed", item_id: "u" },
    { type: "conversation.item.added", item: { id: "u" } },
    { type: "conversation.item.done", item: { id: "u" } },
    { type: "conversation.item.input_audio_transcription.completed", item_id: "u" },
    { type: "response.created", response: { id: "r" } },
    { type: "response.output_item.added", response_id: "r", item },
    { type: "conversation.item.added", item },
    { type: "response.content_part.added", ...ids },
    { type: "response.output_audio_transcript.delta", ...ids },
    { type: "response.output_audio.delta", ...ids },
    { type: "response.output_audio.done", ...ids },
    { type: "response.output_audio_transcript.done", ...ids },
    { type: "response.content_part.done", ...ids },
    { type: "conversation.item.done", item },
    { type: "response.output_item.done", response_id: "r", item },
    { type: "response.done", response: { id: "r", usage } },
  ]
  const broken = (events: ReadonlyArray<Readonly<Record<string, unknown>>>): ReadonlyArray<string> => {
    const orders = new EventOrders()
    for (const event of events) orders.see(event)
    expect(orders.count).toBe(orders.broken.length)
    return orders.broken
  }

  it("finds nothing wrong with an answer in order", () => {
    expect(broken(good)).toEqual([])
  })

  it("finds every event that is doubled, but deltas", () => {
    for (const [at, event] of good.entries()) {
      const isFree = /delta$|session.created|_transcript.done/.test(String(event.type))
      const found = broken([...good.slice(0, at + 1), event, ...good.slice(at + 1)])
      expect(found.length > 0, String(event.type)).toBe(!isFree)
    }
  })

  it("finds audio after its end, an end without usage, an answer that never began", () => {
    expect(broken([...good, good[12]!])).toContain("response.output_audio.delta: comes after the end")
    expect(
      broken([...good.slice(0, -1), { type: "response.done", response: { id: "r", usage: null } }]),
    ).toEqual(["response.done: has no usage"])
    expect(broken([good[0]!, { type: "response.done", response: { id: "x", usage } }])).toEqual([
      "response.done: ends without a beginning",
    ])
    expect(broken(good.slice(1))).toEqual(["input_audio_buffer.speech_started: comes before session.created"])
  })
})

describe("waiting", () => {
  afterEach(() => void vi.restoreAllMocks())

  it("ends at its moment, also when the moment passes between the condition and the timer", async () => {
    const session = new Session({
      model: "m",
      turns: { type: "none" },
      voice: undefined,
      instructions: undefined,
      transcriptionModel: undefined,
      language: undefined,
      maxTokens: 1,
      pieceMs: 20,
    })
    // Each reading of the clock is a millisecond later; the moment is between two of them.
    let readMs = 1_000
    vi.spyOn(performance, "now").mockImplementation(() => readMs++)
    const atMs = 1_000.5
    const next = (nowMs: number) => (nowMs < atMs ? atMs : Number.POSITIVE_INFINITY)
    await session.until((nowMs) => nowMs >= atMs, 60_000, "too late", new AbortController().signal, next)
    expect(readMs).toBeLessThan(1_010)
  })
})
