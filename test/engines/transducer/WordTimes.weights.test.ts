// How exact the times of words are, on tones whose times are known: the beginning of each word against the beginning of its tone.
import { rmSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { s16ToF32 } from "#domain/audio/Audio.ts"
import type { TranscriptionEngine } from "#engines/protocol/Engine.ts"
import { transducerOnnx } from "#engines/transducer/TransducerEngine.ts"
import { endOf, randomTones, toneAudio, toneEars, toneWords } from "../../support/engines/ToneEars.ts"
import { collector, request } from "../whisper/support/demoModel.ts"

const at = (values: ReadonlyArray<number>, part: number) => values[Math.floor(part * (values.length - 1))]!

it.effect.each(["sherpa", "genai", "tdt", "zipformer"] as const)("%s", (layout) =>
  Effect.gen(function* () {
    const ears = yield* Effect.acquireRelease(
      Effect.sync(() => toneEars({ layout })),
      ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true })),
    )
    const engine = (yield* transducerOnnx.acquire(ears.spec)) as TranscriptionEngine
    const starts: Array<number> = []
    for (let seed = 1; seed <= 8; seed++) {
      const tones = randomTones(12, seed)
      const samples = s16ToF32(toneAudio(tones, endOf(tones) + 0.5, seed))
      const out = collector()
      yield* engine.transcribe(request(samples, { language: undefined, words: true }), out)
      const words = out.segments.flatMap((segment) => segment.words ?? [])
      const heard = words.map(({ word }) => word.toLowerCase().replace("!", ""))
      if (heard.join() !== tones.map(({ word }) => toneWords[word]).join()) continue
      words.forEach(({ start }, i) => starts.push(Math.abs(start - tones[i]!.start)))
    }
    starts.sort((a, b) => a - b)
    expect(starts.length).toBeGreaterThan(60)
    expect(at(starts, 0.5)).toBeLessThan(0.04)
    expect(at(starts, 0.95)).toBeLessThan(0.1)
  }),
)
