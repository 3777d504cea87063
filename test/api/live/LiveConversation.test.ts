// A live session over a socket made of two functions: exactly one last event for any frames, nothing after it, a
// slow reader that costs nothing, and an engine failure that ends the session with an error event.

import { describe, expect, it } from "@effect/vitest"
import { Cause, Effect, Fiber, Logger, Queue } from "effect"
import { isCloseEvent, type Reader, type SocketError, type Writer } from "effect/socket/Socket"
import * as fc from "fast-check"
import type { Transcribe } from "#actors/live/IncrementalTranscriber.ts"
import type { LiveError } from "#actors/live/SessionLease.ts"
import type { CredentialEnd } from "#api/access/CredentialEnd.ts"
import { converse } from "#api/live/LiveConversation.ts"
import { voice } from "../../support/audio/Voice.ts"
import { captionAfter } from "../../support/clients/LiveClient.ts"
import {
  bytesOf,
  fileAnswer,
  liveSession,
  rateHz,
  samplesOf,
  transcriber,
} from "../../support/engines/LiveTranscriber.ts"

const speech = samplesOf(12, 8)
const pcm = (from: number, to: number) => bytesOf(speech.subarray(from * rateHz, to * rateHz))
const stop = '{"type":"stop"}'
const settled = Effect.repeat(Effect.yieldNow, { times: 30 })

type Event = Readonly<Record<string, unknown>>

interface Options {
  readonly transcribe?: Transcribe<LiveError>
  readonly onCredentialEnd?: (told: (end: CredentialEnd) => void) => () => void
  readonly speechEvents?: boolean
  /** What a write waits for. */
  readonly slow?: Effect.Effect<void>
}

const talk = Effect.fnUntraced(function* (options: Options = {}) {
  const frames = yield* Queue.unbounded<string | Uint8Array, Cause.Done>()
  const events: Array<Event> = []
  const closes: Array<readonly [number, string | undefined]> = []
  const reader = { pull: Effect.orDie(Queue.takeAll(frames)) } as unknown as Reader
  const write: Writer["write"] = (chunk) =>
    Effect.suspend(() => {
      if (isCloseEvent(chunk)) closes.push([chunk.code, chunk.reason])
      else events.push(JSON.parse(String(chunk)) as Event)
      return options.slow ?? Effect.void
    })
  const { session } = liveSession(options.transcribe ?? transcriber<LiveError>(), { isBusy: () => false })
  const conversation = {
    session,
    language: undefined,
    speechEvents: options.speechEvents ?? false,
    onCredentialEnd: options.onCredentialEnd ?? (() => () => {}),
    pace: { take: () => Effect.succeed(() => {}), event: () => Effect.void },
  }
  const writer: Writer = { write, writeAll: () => Effect.die(new Error("unused")) }
  const run: Effect.Effect<boolean, SocketError> = converse(conversation, reader, writer)
  const fiber = yield* Effect.forkChild(run, { startImmediately: true })
  const send = (...all: ReadonlyArray<string | Uint8Array>) => {
    for (const frame of all) Queue.offerUnsafe(frames, frame)
    return settled
  }
  return { fiber, frames, events, closes, send, session }
})

const lasts = (events: ReadonlyArray<Event>) =>
  events.filter(({ type }) => type === "transcript.text.done" || type === "error")

describe("the last event", () => {
  const frame = fc.oneof(
    fc.integer({ min: 0, max: 11 }).map((from) => pcm(from, from + 1)),
    fc.constantFrom<string | Uint8Array>(new Uint8Array(2), new Uint8Array(0), new Uint8Array(640)),
    fc.constantFrom<string | Uint8Array>(new Uint8Array(3), stop, stop, "{}", "nonsense", ""),
  )
  it("is one, and the last, whatever the frames", async () => {
    const seen = { done: 0, error: 0 }
    await fc.assert(
      fc.asyncProperty(fc.array(frame, { maxLength: 12 }), fc.boolean(), async (frames, atOnce) => {
        const { closes, events } = await Effect.runPromise(
          Effect.gen(function* () {
            const talking = yield* talk()
            if (atOnce) yield* talking.send(...frames, stop)
            else for (const one of [...frames, stop]) yield* talking.send(one)
            yield* Fiber.join(talking.fiber)
            return talking
          }),
        )
        expect(lasts(events).length).toBe(1)
        const last = events.at(-1)!
        expect(lasts(events)[0]).toBe(last)
        expect(closes).toEqual(last.type === "error" ? [[1003, expect.any(String)]] : [[1000, ""]])
        seen[last.type === "error" ? "error" : "done"]++
      }),
      { numRuns: 100 },
    )
    expect(Math.min(seen.done, seen.error)).toBeGreaterThan(10)
  })

  it.effect("is what a file of the same audio says", () =>
    Effect.gen(function* () {
      const { events, fiber, send } = yield* talk()
      for (let at = 0; at < 5; at++) yield* send(pcm(at, at + 1))
      yield* send(stop, pcm(5, 6), "nonsense")
      expect(yield* Fiber.join(fiber)).toBe(false)
      const { text } = fileAnswer(speech.subarray(0, 5 * rateHz))
      expect(events.at(-1)).toEqual({ type: "transcript.text.done", text, duration: 5, language: "en" })
      const captions = events.slice(0, -1)
      expect(captions.map(({ audio_ms, rev }) => [rev, audio_ms])).toEqual(
        [1, 2, 3, 4, 5].map((second) => [second, second * 1_000]),
      )
      const shown = captions.reduce((caption, event) => captionAfter(caption, event as never), "")
      expect(shown).toBe(text)
    }),
  )

  it.effect("comes when the node stops, and is nothing for who said nothing", () =>
    Effect.gen(function* () {
      const spoken = yield* talk()
      yield* spoken.send(pcm(0, 1))
      spoken.session.stop("drain")
      yield* Fiber.join(spoken.fiber)
      expect(lasts(spoken.events)).toMatchObject([{ type: "transcript.text.done", duration: 1 }])
      expect(spoken.closes).toEqual([[1001, "server is shutting down"]])
      const silent = yield* talk()
      silent.session.stop("drain")
      yield* Fiber.join(silent.fiber)
      expect([silent.events, silent.closes]).toEqual([[], [[1001, "server is shutting down"]]])
    }),
  )

  it.effect("is an error when the credential is revoked", () =>
    Effect.gen(function* () {
      let revoke = () => {}
      let watched = 0
      const onCredentialEnd = (told: (end: CredentialEnd) => void) => {
        watched++
        revoke = () => told("credential revoked")
        return () => void watched--
      }
      const { closes, events, fiber } = yield* talk({ onCredentialEnd })
      expect(watched).toBe(1)
      revoke()
      yield* Fiber.join(fiber)
      expect(watched).toBe(0)
      expect(events).toEqual([{ type: "error", error: "Invalid API key" }])
      expect(closes).toEqual([[1008, "credential revoked"]])
    }),
  )
})

describe("a process that fails", () => {
  it.effect("ends the session with an error and 1011, be it the ears or the reader", () =>
    Effect.gen(function* () {
      const deaf = yield* talk({ transcribe: () => Effect.die(new Error("bug")) })
      yield* deaf.send(pcm(0, 2))
      expect(yield* Fiber.join(deaf.fiber)).toBe(true)
      expect(deaf.events).toEqual([{ type: "error", error: "Internal server error" }])
      expect(deaf.closes).toEqual([[1011, "failed"]])
      const blind = yield* talk()
      yield* blind.send(pcm(0, 0.5))
      yield* Queue.failCause(blind.frames, Cause.die(new Error("bug")))
      expect(yield* Fiber.join(blind.fiber)).toBe(true)
      expect(blind.events).toEqual([{ type: "error", error: "Internal server error" }])
    }).pipe(Effect.provideService(Logger.CurrentLoggers, new Set())),
  )
})

describe("a reader that is too slow", () => {
  it.effect("misses captions in between, has the newest one, and can fold what it has", () =>
    Effect.gen(function* () {
      // Each write takes three event loop ticks.
      const { events, fiber, send } = yield* talk({ slow: Effect.andThen(settled, settled) })
      for (let at = 0; at < 10; at++) yield* send(pcm(at, at + 1))
      yield* send(stop)
      yield* Fiber.join(fiber)
      const captions = events.filter(({ type }) => type === "transcript.text.delta")
      expect(captions.length).toBeGreaterThan(1)
      expect(captions.length).toBeLessThan(10)
      expect(captions.map(({ rev }) => rev)).toEqual(captions.map((_, i) => i + 1))
      let caption = ""
      for (const event of captions) {
        caption = captionAfter(caption, event as never)
        const heard = fileAnswer(speech.subarray(0, ((event.audio_ms as number) / 1000) * rateHz))
        expect(caption).toBe(heard.text)
      }
    }),
  )
})

describe("speech events", () => {
  it.effect("are sent only to clients that request them", () =>
    Effect.gen(function* () {
      const quiet = new Uint8Array(2 * rateHz)
      for (const speechEvents of [true, false]) {
        const { events, fiber, send } = yield* talk({ speechEvents })
        yield* send(quiet, voice(2, 1, 16_000), quiet, quiet, stop)
        yield* Fiber.join(fiber)
        const told = events.filter(({ type }) => String(type).startsWith("speech_"))
        if (!speechEvents) expect(told).toEqual([])
        else {
          expect(told[0]).toEqual({ type: "speech_started", audio_ms: expect.any(Number) })
          expect(told[0]!.audio_ms).toBeGreaterThanOrEqual(1_000)
          expect(told.at(-1)!.type).toBe("speech_stopped")
        }
      }
    }),
  )
})
