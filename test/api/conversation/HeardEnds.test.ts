// A model that hears the ends of turns is asked about one silence at a time, and the newest counts.
import { expect, it } from "@effect/vitest"
import { Deferred, Effect } from "effect"
import { HeardEnds } from "#api/conversation/HeardEnds.ts"
import type { Detected, DetectPiece } from "#engines/protocol/Detection.ts"

const make = Effect.gen(function* () {
  const asked: Array<{ readonly length: number; readonly answer: Deferred.Deferred<Detected | undefined> }> =
    []
  const model = {
    isReady: () => true,
    detect: ({ samples }: DetectPiece) =>
      Effect.suspend(() => {
        const answer = Deferred.makeUnsafe<Detected | undefined>()
        asked.push({ length: samples.length, answer })
        return Deferred.await(answer)
      }),
  }
  const lengths: Array<readonly [silence: number, ms: number]> = []
  const ends = new HeardEnds({ model, eagerness: () => "medium" })
  yield* Effect.forkScoped(ends.run)
  const pause = (silence: number) =>
    ends.paused({ samples: new Int16Array(silence), setLength: (ms) => void lengths.push([silence, ms]) })
  const settle = Effect.gen(function* () {
    for (let i = 0; i < 20; i++) yield* Effect.yieldNow
  })
  const answer = (at: number, score: number | undefined) =>
    Effect.andThen(
      Deferred.succeed(
        asked[at]!.answer,
        score === undefined ? undefined : { scores: Float32Array.of(score) },
      ),
      settle,
    )
  return { asked, lengths, pause, settle, answer }
})

it.effect("a complete turn ends soon, an incomplete one late", () =>
  Effect.gen(function* () {
    const { answer, lengths, pause, settle } = yield* make
    pause(1)
    yield* settle
    yield* answer(0, 0.9)
    pause(2)
    yield* settle
    yield* answer(1, 0)
    expect(lengths).toEqual([
      [1, 240],
      [2, 1_200],
    ])
  }),
)

it.effect("a newer silence takes the place of the one that is asked about, and of one that waits", () =>
  Effect.gen(function* () {
    const { answer, asked, lengths, pause, settle } = yield* make
    pause(1)
    yield* settle
    pause(2)
    pause(3)
    yield* settle
    expect(asked.map(({ length }) => length)).toEqual([1, 3])
    yield* answer(0, 0.9)
    expect(lengths).toEqual([])
    yield* answer(1, 0.9)
    expect(lengths).toEqual([[3, 240]])
  }),
)

it.effect("without an answer the silence keeps its length", () =>
  Effect.gen(function* () {
    const { answer, lengths, pause, settle } = yield* make
    pause(1)
    yield* settle
    yield* answer(0, undefined)
    expect(lengths).toEqual([])
    pause(2)
    yield* settle
    yield* answer(1, 1)
    expect(lengths).toEqual([[2, 240]])
  }),
)
