// An upload's samples for one run: after a crash of the decoder its samples are not decoded again, a full disk is not
// blamed on the file, and the ring is removed with the run. The decoder here is a script.
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { it as effectIt } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { DecoderFailed } from "#audio/AudioErrors.ts"
import { type DecodedRing, Decoder } from "#audio/Decoder.ts"
import type { RingRequest } from "#audio/decoder/DecoderWire.ts"
import { ringCapacity, type SampleSpan } from "#domain/audio/SampleRing.ts"
import { isAnothersRing, openAudio, ringFolder } from "#services/TranscriptionAudio.ts"

const folder = mkdtempSync(join(tmpdir(), "edgewise-audio-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))
const uploads = join(folder, "uploads")
const upload = join(uploads, "upload")
mkdirSync(ringFolder(uploads))

const info = { container: "wav", codec: "pcm_s16le", sourceRateHz: 16_000, channels: 1 }
type Failure = "Died" | "Spool" | "Busy"

/** Each decode delivers its counts, then the end or a failure. */
const scripted = (
  decodes: ReadonlyArray<{ readonly counts: ReadonlyArray<number>; readonly fails?: Failure }>,
) => {
  const asked: Array<RingRequest> = []
  const limits: Array<number> = []
  const service = Decoder.of({
    decode: () => Effect.die("not asked for"),
    decodePicture: () => Effect.die("not asked for"),
    ready: Effect.void,
    readyForPictures: Effect.void,
    warm: Effect.void,
    pids: () => [],
    decodeInto: (_path, ring) =>
      Effect.suspend(() => {
        const { counts, fails } = decodes[asked.length]!
        asked.push(ring)
        if (!existsSync(ring.path)) writeFileSync(ring.path, "")
        const failure = fails && new DecoderFailed({ reason: fails, detail: "scripted" })
        if (counts.length === 0 && failure !== undefined) return Effect.fail(failure)
        let at = 0
        return Effect.succeed<DecodedRing>({
          info,
          totals: () => undefined,
          allowUntil: (until) => void limits.push(until),
          pull: Effect.suspend(() => {
            if (at < counts.length) return Effect.succeed(counts[at++])
            return failure === undefined ? Effect.succeed(undefined) : Effect.fail(failure)
          }),
        })
      }),
  })
  return { asked, limits, service }
}

const opened = (service: Decoder["Service"], skip = 0) =>
  openAudio("ears", upload, skip, { user: "a", urgency: "interactive" }).pipe(
    Effect.provideService(Decoder, service),
  )

describe("an upload's samples", () => {
  effectIt.effect("go on where a decoder died, once", () =>
    Effect.gen(function* () {
      const { asked, limits, service } = scripted([
        { counts: [100, 50], fails: "Died" },
        { counts: [70], fails: "Died" },
      ])
      yield* Effect.scoped(
        Effect.gen(function* () {
          const audio = yield* opened(service, 1_000)
          expect(yield* audio.next).toBe(100)
          audio.release(1_060)
          expect(yield* audio.next).toBe(50)
          expect(yield* audio.next).toBe(70)
          const error = yield* Effect.flip(audio.next)
          expect(error).toMatchObject({ _tag: "InvalidRequest", field: "file" })
          const span = audio.span(1_060, 160) as SampleSpan
          expect(span).toMatchObject({ from: 1_060, count: 160, ringSamples: ringCapacity })
          expect(existsSync(span.path)).toBe(true)
        }),
      )
      expect(asked.map(({ from, until }) => [from, until])).toEqual([
        [1_000, 1_000 + ringCapacity],
        [1_150, 1_060 + ringCapacity],
      ])
      expect(limits).toEqual([1_060 + ringCapacity])
      expect(new Set(asked.map(({ path }) => path)).size).toBe(1)
      expect(existsSync(asked[0]!.path)).toBe(false)
    }),
  )

  for (const reason of ["Spool", "Busy"] as const) {
    effectIt.effect(`are unavailable for now where the decoder reports ${reason}: at first, or later`, () =>
      Effect.gen(function* () {
        const atFirst = yield* Effect.flip(
          Effect.scoped(opened(scripted([{ counts: [], fails: reason }]).service)),
        )
        expect(atFirst._tag).toBe("AtCapacity")
        const later = Effect.flatMap(opened(scripted([{ counts: [1], fails: reason }]).service), ({ next }) =>
          Effect.andThen(next, next),
        )
        expect((yield* Effect.flip(Effect.scoped(later)))._tag).toBe("AtCapacity")
      }),
    )
  }
})

it("knows the ring of a node that lives", () => {
  expect(isAnothersRing(`a.${process.ppid}.f32`)).toBe(true)
  for (const name of [`a.${process.pid}.f32`, "a.999999999.f32", "a.f32", `a.${process.ppid}`, ""]) {
    expect([name, isAnothersRing(name)]).toEqual([name, false])
  }
})
