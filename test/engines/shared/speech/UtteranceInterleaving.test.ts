// Several utterances on one graph, on a test clock: playback of none runs dry, none waits for another's whole text,
// and the audio does not depend on the other utterances. The graph is a script: 1 ms a symbol, 50 ms of audio.
import { describe, expect, it } from "@effect/vitest"
import { Clock, Effect, type Fiber } from "effect"
import { TestClock } from "effect/testing"
import { DeadlineQueue } from "#domain/queues/DeadlineQueue.ts"
import { fromVocabulary } from "#engines/shared/speech/Symbols.ts"
import { type Speaker, speak } from "#engines/shared/speech/Utterance.ts"
import { constantStyle } from "#engines/shared/speech/VoiceStyles.ts"
import type { Fragment } from "#engines/shared/speech/WordSymbols.ts"
import { samplesOf, speechOutlet } from "../../kokoro/speech.ts"

const rate = 24_000
const costMs = 1
const soundMs = 50

const symbols = fromVocabulary(Object.fromEntries([..."$abcdefg ."].map((symbol, id) => [symbol, id])))

/** A graph whose calls take time on the test clock; records how many calls ran at once. */
const scripted = () => {
  const calls = { now: 0, most: 0, symbols: 0 }
  const speaker: Speaker = {
    symbols,
    calls: new DeadlineQueue(),
    rateHz: rate,
    maxSymbols: 120,
    graph: {
      wholeSpeed: false,
      synthesize: (ids, style) =>
        Effect.gen(function* () {
          const count = ids.length - 2
          calls.most = Math.max(calls.most, ++calls.now)
          calls.symbols += count
          yield* Effect.sleep(count * costMs)
          calls.now--
          const wave = new Float32Array((count * soundMs * rate) / 1000)
          for (let i = 0; i < wave.length; i++) wave[i] = 0.5 * Math.sin(i / 7 + ids[1]! + style[0]!)
          return { wave }
        }),
    },
  }
  return { speaker, calls }
}

const text = (sentences: number): AsyncIterable<Fragment> =>
  (async function* () {
    for (let i = 0; i < sentences; i++)
      yield { phonemes: "abcdefg abcdefg abcdefg abcdefg. ", words: "a b c d" }
  })()

interface Heard {
  /** Arrival time of each unit, ms. */
  readonly at: Array<number>
  readonly outlet: ReturnType<typeof speechOutlet>
}

const start = Effect.fnUntraced(function* (
  speaker: Speaker,
  sentences: number,
  priority: "stream" | "batch" = "stream",
) {
  const clock = yield* Clock.Clock
  const heard: Heard = { at: [], outlet: speechOutlet() }
  heard.outlet.onPush = () => heard.at.push(clock.currentTimeMillisUnsafe())
  const style = Effect.succeed(constantStyle(new Float32Array(256)))
  const fiber = yield* Effect.forkChild(
    speak(speaker, { fragments: text(sentences), style, speed: 1, priority }, heard.outlet),
    { startImmediately: true },
  )
  return { heard, fiber }
})

/** Steps the clock until every fiber is done; the pieces are read by promises, which need event loop ticks. */
const runAll = Effect.fnUntraced(function* (
  fibers: ReadonlyArray<Fiber.Fiber<unknown, unknown>>,
  limitMs: number,
) {
  for (let ms = 0; ms < limitMs && fibers.some((fiber) => fiber.pollUnsafe() === undefined); ms += 2) {
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    yield* TestClock.adjust(2)
  }
})

/** Milliseconds of silence during playback that began at the first unit. */
const dryMs = ({ at, outlet }: Heard): number => {
  let soundUntil = at[0]!
  let dry = 0
  for (const [index, when] of at.entries()) {
    if (when > soundUntil) {
      dry += when - soundUntil
      soundUntil = when
    }
    soundUntil += (outlet.units[index]!.samples.length * 1000) / rate
  }
  return dry
}

describe("interleaving", () => {
  it.effect("eight streams: each begins soon, none runs dry, one call at a time", () =>
    Effect.gen(function* () {
      const { speaker, calls } = scripted()
      const runs = yield* Effect.forEach(Array.from({ length: 8 }), () => start(speaker, 12))
      yield* runAll(
        runs.map((run) => run.fiber),
        20_000,
      )
      expect(calls.most).toBe(1)
      for (const { heard } of runs) {
        // Eight first pieces of 32 symbols, and at most one longer piece that was running: far from eight whole texts.
        expect(heard.at[0]).toBeLessThanOrEqual(8 * 32 + 120 + 50)
        expect(dryMs(heard)).toBe(0)
        expect(heard.outlet.units.length).toBeGreaterThan(4)
      }
    }),
  )

  it.effect("a new stream goes ahead of a long one that is far enough ahead", () =>
    Effect.gen(function* () {
      const { speaker } = scripted()
      const long = yield* start(speaker, 100)
      for (let i = 0; i < 500; i++) {
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
        yield* TestClock.adjust(2)
      }
      const clock = yield* Clock.Clock
      const arrived = clock.currentTimeMillisUnsafe()
      const short = yield* start(speaker, 1)
      yield* runAll([long.fiber, short.fiber], 30_000)
      // Its own 32 symbols after the one piece that was running.
      expect(short.heard.at[0]! - arrived).toBeLessThanOrEqual(120 + 32 + 10)
      expect(dryMs(long.heard)).toBe(0)
    }),
  )

  it.effect("a batch reply goes behind streams, and still gets done", () =>
    Effect.gen(function* () {
      const { speaker } = scripted()
      const batch = yield* start(speaker, 60, "batch")
      const streams = yield* Effect.forEach(Array.from({ length: 4 }), () => start(speaker, 12))
      yield* runAll([batch.fiber, ...streams.map((run) => run.fiber)], 30_000)
      for (const { heard } of streams) expect(dryMs(heard)).toBe(0)
      const lastStream = Math.max(...streams.map(({ heard }) => heard.at.at(-1)!))
      expect(batch.heard.at.at(-1)!).toBeGreaterThan(lastStream)
      expect(batch.fiber.pollUnsafe()).toMatchObject({ _tag: "Success" })
    }),
  )

  it.effect("what is said is the same alone, in company, streamed or whole", () =>
    Effect.gen(function* () {
      const alone = scripted()
      const single = yield* start(alone.speaker, 20)
      yield* runAll([single.fiber], 20_000)
      const { speaker } = scripted()
      const runs = yield* Effect.forEach(["stream", "batch", "stream"] as const, (priority) =>
        start(speaker, 20, priority),
      )
      yield* runAll(
        runs.map((run) => run.fiber),
        30_000,
      )
      for (const { heard } of runs) expect(samplesOf(heard.outlet)).toEqual(samplesOf(single.heard.outlet))
    }),
  )
})
