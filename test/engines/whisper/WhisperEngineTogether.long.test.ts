// Several windows in one request: the same segments as one request each, in far fewer native calls, and the caller
// gets the progress of each window.
import { rmSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Segment, TranscriptionEngine } from "#engines/protocol/Engine.ts"
import { whisperHfOnnx } from "#engines/whisper/WhisperEngine.ts"
import { countedCalls } from "../../support/engines/NativeCalls.ts"
import { clips, collector, demoSpec, request, samplesOf } from "./support/demoModel.ts"
import { toyWhisper } from "./support/toyWhisper.ts"

const deployed = { variableLength: true, pieceSeconds: 8 }
/** Some windows of speech. */
const joined = clips.slice(0, 8).map(samplesOf)
const samples = new Float32Array(joined.reduce((sum, { length }) => sum + length, 0))
joined.reduce((at, clip) => {
  samples.set(clip, at)
  return at + clip.length
}, 0)

interface Placed extends Pick<Segment, "start" | "end" | "text" | "tokens"> {
  readonly at: number
}

/** The whole file, so many samples a request. */
const hear = Effect.fnUntraced(function* (
  engine: TranscriptionEngine,
  together: boolean,
  lengths: ReadonlyArray<number>,
) {
  const heard: Array<Placed> = []
  const ends: Array<number> = []
  const finished: Array<number> = []
  let previousTokens: ReadonlyArray<number> = []
  for (let at = 0, turn = 0; at < samples.length; turn++) {
    const window = samples.subarray(at, at + lengths[turn % lengths.length]!)
    const last = at + window.length === samples.length
    const out = collector()
    const end = yield* engine.transcribe(request(window, { previousTokens, last, together }), out)
    for (const { end: stop, finishedSamples, start, text, tokens, windowAt = 0 } of out.segments) {
      heard.push({ at: at + windowAt, start, end: stop, text, tokens })
      if (finishedSamples !== undefined) finished.push(at + finishedSamples)
    }
    at += end.consumedSamples
    ends.push(at)
    previousTokens = end.previousTokens
  }
  return { heard, ends, finished }
})

describe("windows together", () => {
  it.effect("give what they give one by one, in fewer calls", () =>
    Effect.gen(function* () {
      const calls = yield* countedCalls("input_ids")
      const engine = (yield* whisperHfOnnx.acquire(demoSpec(deployed))) as TranscriptionEngine
      const { closedSeconds, togetherSeconds } = engine.facts
      const window = closedSeconds! * 16_000 + 1
      const most = togetherSeconds! * 16_000
      const loaded = calls()
      const alone = yield* hear(engine, false, [window])
      const callsAlone = calls() - loaded
      expect(alone.finished).toEqual([])
      for (const lengths of [[most], [window, most], [250_000, 300_001]]) {
        const before = calls()
        const { ends, finished, heard } = yield* hear(engine, true, lengths)
        expect(heard).toEqual(alone.heard)
        // Between two calls or inside one, every end of a window is reported.
        expect(alone.ends).toEqual(expect.arrayContaining([...ends, ...finished]))
        expect(finished.length).toBeGreaterThan(0)
        // Measured: 0.38 to 0.61.
        expect(calls() - before).toBeLessThan(0.75 * callsAlone)
      }
    }),
  )

  it.effect("a request that does not ask for it is one window, and so is one with a temperature", () =>
    Effect.gen(function* () {
      const engine = (yield* whisperHfOnnx.acquire(demoSpec(deployed))) as TranscriptionEngine
      const window = samples.subarray(0, 400_000)
      for (const more of [{}, { together: true, temperature: 0.4 }]) {
        const end = yield* engine.transcribe(request(window, { ...more, last: false }), collector())
        expect(end.consumedSamples).toBeLessThanOrEqual(8 * 16_000)
      }
    }),
  )

  it.effect("are left alone where the graph cannot do it, or windows depend on each other's texts", () =>
    Effect.gen(function* () {
      const whole = yield* whisperHfOnnx.acquire(demoSpec({ variableLength: true }))
      expect(whole.facts).not.toHaveProperty("togetherSeconds")
      const toy = yield* Effect.acquireRelease(
        Effect.sync(() => toyWhisper({ seed: 1 })),
        ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true })),
      )
      // This graph has no second row.
      const single = yield* whisperHfOnnx.acquire({ ...toy.spec, options: { pieceSeconds: 8 } })
      expect(single.facts).not.toHaveProperty("togetherSeconds")
    }),
  )
})
