// Characters whose bytes lie on both sides of a timestamp, a window or the token limit, through the whole engine over a
// table model with a byte alphabet.
import { rmSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { TranscribeRequest, TranscriptionEngine } from "#engines/protocol/Engine.ts"
import { whisperHfOnnx } from "#engines/whisper/WhisperEngine.ts"
import { readModel } from "#engines/whisper/WhisperModel.ts"
import { collector, demoSpec, request } from "./support/demoModel.ts"
import { type Script, scripted, toyWhisper } from "./support/toyWhisper.ts"

const silence = new Float32Array(80_000)
const start = [257, 258, 267]
/** `<|startofprev|>`: in front of earlier text. */
const previous = 269
const timeOf = (step: number) => 272 + step

type Parts = ReadonlyArray<Script>

/** The engine over a table whose output is `parts`; times are moved until no two steps need the same row. */
const load = Effect.fnUntraced(function* (partsAt: (step: number) => Parts) {
  for (let step = 1; step < 40; step++) {
    const toy = yield* Effect.try(() => toyWhisper({ seed: 1, patch: scripted(...partsAt(step)) })).pipe(
      Effect.orElseSucceed(() => undefined),
    )
    if (toy === undefined) continue
    yield* Effect.addFinalizer(() => Effect.sync(() => rmSync(toy.folder, { recursive: true })))
    const engine = (yield* whisperHfOnnx.acquire(toy.spec)) as TranscriptionEngine
    return Effect.fnUntraced(function* (more: Partial<TranscribeRequest> = {}) {
      const out = collector()
      const end = yield* engine.transcribe(request(silence, more), out)
      return { ...end, texts: out.segments.map(({ text }) => text), segments: out.segments }
    })
  }
  return yield* Effect.die(new Error("no times without a clash"))
})

const bytesOf = Effect.map(readModel(demoSpec()), (model) => {
  const ids = new Map(Array.from({ length: 256 }, (_, id) => [model.bytesOf([id])[0]!, id] as const))
  return (...bytes: ReadonlyArray<number>) => bytes.map((byte) => ids.get(byte)!)
})

it.effect("a timestamp inside a character: it belongs to the segment that completes it", () =>
  Effect.gen(function* () {
    const ids = yield* bytesOf
    let character = ""
    const say = yield* load((step) => {
      character = String.fromCodePoint(0x4e00 + 37 * step)
      const [a, b, c] = [...Buffer.from(character)] as [number, number, number]
      const pause = timeOf(60 + 2 * step)
      const script = [...ids(0x41, a, b), pause, pause, ...ids(c, 0x42)]
      return [{ prompt: start, script: [timeOf(0), ...script, timeOf(150 + 3 * step)] }]
    })
    const heard = yield* say({ words: true })
    expect(heard.texts).toEqual([" A", `${character}B`])
    expect(heard.segments.map(({ words }) => words!.map(({ word }) => word))).toEqual([
      ["A"],
      [`${character}B`],
    ])
  }),
)

it.effect("bytes that are no character, and a written U+FFFD, are dropped", () =>
  Effect.gen(function* () {
    const ids = yield* bytesOf
    const wrong = (bytes: (step: number) => ReadonlyArray<number>) =>
      load((step) => [
        { prompt: start, script: [timeOf(0), ...ids(0x41, ...bytes(step), 0x42), timeOf(60 + step)] },
      ])
    for (const bytes of [
      () => [0xef, 0xbf, 0xbd],
      (step: number) => [0x80 + step, 0xff],
      (step: number) => [0xc3, 0x43 + step],
    ]) {
      const say = yield* wrong(bytes)
      expect((yield* say()).texts[0]).toMatch(/^ A[\x20-\x7e]?B$/)
    }
  }),
)

it.effect("a window that ends inside a character goes on in the next one, or drops it", () =>
  Effect.gen(function* () {
    const ids = yield* bytesOf
    const spoken = ids(0x42, 0xe4)
    const say = yield* load((step) => [
      { prompt: start, script: [timeOf(0), ...spoken, timeOf(100 + step)] },
      {
        prompt: [previous, ...spoken, ...start],
        script: [timeOf(step % 7), ...ids(0xbd, 0xa0), timeOf(50 + step)],
      },
    ])
    const first = yield* say({ last: false })
    expect(first.texts).toEqual([" B"])
    expect(first.previousTokens).toEqual(spoken)
    expect((yield* say({ previousTokens: first.previousTokens })).texts).toEqual(["你"])
  }),
)
