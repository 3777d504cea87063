// Files share the decoder processes by user: a long file gives its process back while another user's file waits, and goes on
// later without losing or repeating a sample. Real files and processes; the choice itself as a property.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { it as effectIt } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import fc from "fast-check"
import { afterAll, describe, expect, it } from "vitest"
import { Decoder, makeDecoder } from "#audio/Decoder.ts"
import { type Ask, victimOf } from "#audio/DecoderPool.ts"
import { readSpan } from "#engines/shared/files/RequestFiles.ts"
import { openAudio, ringFolder } from "#services/TranscriptionAudio.ts"
import { chirp, wavBytes } from "../support/audio/AudioFiles.ts"
import { eachDecoder } from "./DecoderHarness.ts"

const folder = mkdtempSync(join(tmpdir(), "edgewise-fair-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

describe("the decode that gives its process back", () => {
  const held = fc.record({
    ask: fc.record({
      user: fc.constantFrom("a", "b", "c"),
      urgency: fc.constantFrom<Ask["urgency"]>("interactive", "background"),
      continues: fc.boolean(),
      onPreempted: fc.constantFrom(undefined, () => {}),
    }),
    sinceMs: fc.nat(10_000),
    reachMs: fc.option(fc.nat(3_000), { nil: undefined }),
  })
  const heldAll = fc.array(
    held.map(({ ask, reachMs, sinceMs }) => {
      const { onPreempted, ...place } = ask
      return {
        ask: onPreempted === undefined ? place : { ...place, onPreempted },
        sinceMs,
        deliversMs: reachMs === undefined ? undefined : sinceMs + reachMs,
      }
    }),
    { maxLength: 6 },
  )

  it("can go on later, has had its time, and belongs to a user that holds more", () =>
    fc.assert(
      fc.property(heldAll, fc.constantFrom("a", "b", "c", "d"), (all, user) => {
        const nowMs = 10_000
        const of = (name: string) =>
          all.filter(({ ask }) => ask.user === name && ask.urgency !== "background").length
        const victim = victimOf(all, user, nowMs, 1_000)
        const allowed = all.filter(
          ({ ask, deliversMs, sinceMs }) =>
            "onPreempted" in ask &&
            deliversMs !== undefined &&
            nowMs - sinceMs >= Math.max(1_000, 5 * (deliversMs - sinceMs)) &&
            (ask.urgency === "background" || of(ask.user) > of(user)),
        )
        if (victim === undefined) expect(allowed).toEqual([])
        else expect(allowed).toContain(victim)
        if (allowed.some(({ ask }) => ask.urgency === "background")) {
          expect(victim?.ask.urgency).toBe("background")
        }
      }),
    ))
})

const seconds = 400
const uploads = join(folder, "uploads")
mkdirSync(uploads)
mkdirSync(ringFolder(uploads))
const long = join(uploads, "long")
writeFileSync(long, wavBytes(chirp(seconds * 16_000, 16_000), 16_000, "16"))
const short = join(uploads, "short")
writeFileSync(short, wavBytes(chirp(16_000, 16_000), 16_000, "16"))

/** Takes a file's samples as a recogniser does: a window, then `pause`. */
const listen = (path: string, user: string, pause: Effect.Effect<void>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const audio = yield* openAudio("ears", path, 0, { user, urgency: "interactive" })
      const parts: Array<Float32Array> = []
      let at = 0
      for (;;) {
        const more = yield* audio.next
        if (more === undefined) return Buffer.concat(parts.map((part) => Buffer.from(part.buffer)))
        const span = audio.span(at, more)
        if (!("path" in span)) throw new Error("the samples are not in a ring")
        parts.push(readSpan(span).slice())
        at += more
        audio.release(at)
        yield* pause
      }
    }),
  )

eachDecoder("two decoder processes", ({ program }) => {
  effectIt.live("serve another user's file while two long files of one user hold them", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const decoder = yield* makeDecoder({
          program: Effect.succeed(program),
          maxProcesses: 2,
          minHoldMs: 100,
        })
        const run = <A, E>(effect: Effect.Effect<A, E, Decoder>) =>
          Effect.provideService(effect, Decoder, decoder)
        const expected = yield* run(listen(long, "a", Effect.void))
        expect(expected.length).toBe(seconds * 16_000 * 4)

        const gate = yield* Deferred.make<void>()
        const began = [yield* Deferred.make<void>(), yield* Deferred.make<void>()]
        const hogs = yield* Effect.forEach(began, (one) =>
          Effect.forkChild(
            run(listen(long, "a", Effect.andThen(Deferred.succeed(one, undefined), Deferred.await(gate)))),
            { startImmediately: true },
          ),
        )
        yield* Effect.forEach(began, (one) => Deferred.await(one))
        // Both rings are full now or soon, and nothing reads from them: without the exchange this waits for ever, and the test for its time.
        const clip = yield* run(listen(short, "b", Effect.void))
        expect(clip.length).toBe(16_000 * 4)
        // A third file of the same user gets no process of another user.
        const third = yield* Effect.forkChild(run(listen(short, "a", Effect.void)), {
          startImmediately: true,
        })
        yield* Deferred.succeed(gate, undefined)
        for (const hog of hogs) expect((yield* Fiber.join(hog)).equals(expected)).toBe(true)
        expect((yield* Fiber.join(third)).length).toBe(16_000 * 4)
      }),
    ),
  )
})
