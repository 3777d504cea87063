// How many events a realtime socket takes, by what each costs, and how many bytes of large ones, on a virtual clock: an honest client
// is never limited, padding buys nothing.
import { afterEach, beforeEach, describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Queue } from "effect"
import type { CloseEvent, Reader } from "effect/socket/Socket"
import { TestClock } from "effect/testing"
import { vi } from "vitest"
import {
  appendCost,
  EventReader,
  freeAudioMs,
  itemCost,
  smallEvents,
  tooLargeCost,
} from "#api/live/EventReader.ts"
import { CurrentRealtimeBudget, largeTraffic, realtimeBudget, socketShare } from "#api/live/SocketShare.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import { isObject } from "#domain/wire/text/Fields.ts"
import { CutFrame, TextFrame } from "#http/SocketFrames.ts"
import { runs } from "../../support/groups/Runs.ts"

// The clock that divides what comes at once among turns of the loop stands still. These tests wait for a number of turns.
beforeEach(() => {
  vi.spyOn(performance, "now").mockReturnValue(0)
})
afterEach(() => {
  vi.restoreAllMocks()
})

const rateHz = 24_000
const append = (ms: number) => {
  const audio = Buffer.alloc((ms * rateHz * 2) / 1000).toString("base64")
  return JSON.stringify({ type: "input_audio_buffer.append", audio })
}
const clear = '{"type":"input_audio_buffer.clear"}'
const padded = `${clear.slice(0, -1)}${" ".repeat(400)}}`

/** Costs as the sockets have them. An event `echo` is answered with so many bytes. */
const socket = Effect.gen(function* () {
  const share = yield* socketShare("user")
  const frames = yield* Queue.unbounded<string | TextFrame>()
  const errors: Array<unknown> = []
  const seen = { handled: 0, echoed: 0 }
  const reader = new EventReader<InvalidRequest, never>({
    share,
    pace: { take: () => Effect.succeed(() => {}), event: () => Effect.void },
    tell: (_, event) => Effect.sync(() => void errors.push(event)),
    tellError: (error, eventId) => Effect.sync(() => void errors.push([error.field, error.problem, eventId])),
    carryOut: (event) =>
      Effect.gen(function* () {
        if (!isObject(event)) return 1
        const { audio, bytes, type } = event
        seen.handled++
        if (typeof audio === "string") return appendCost((audio.length * 0.75 * 1000) / (2 * rateHz))
        if (type === "conversation.item.create") return itemCost
        if (type === "wrong") return yield* new InvalidRequest({ field: "type", problem: "is wrong" })
        if (typeof bytes === "number") {
          yield* share.write(
            "item_id",
            bytes,
            Effect.sync(() => {
              seen.echoed += bytes
            }),
          )
        }
        return 1
      }),
  })
  const pull = { pull: Queue.takeAll(frames) } as unknown as Reader
  const fiber = yield* Effect.forkChild(reader.readUntilIdle(pull, "15 minutes"), { startImmediately: true })
  const send = (...all: ReadonlyArray<string | TextFrame>) => {
    for (const frame of all) Queue.offerUnsafe(frames, frame)
  }
  const settled = Effect.repeat(Effect.yieldNow, { times: 50 })
  const closed = Effect.sync((): CloseEvent | undefined => {
    const exit = fiber.pollUnsafe()
    return exit?._tag === "Success" ? exit.value : undefined
  })
  return { send, settled, closed, errors, seen, share, end: Fiber.interrupt(fiber) }
})

type Open = Effect.Success<typeof socket>

const withSocket = <A>(use: (open: Open) => Effect.Effect<A>, heapBytes = 2 ** 32) =>
  Effect.scoped(Effect.flatMap(socket, use)).pipe(
    Effect.provideService(CurrentRealtimeBudget, realtimeBudget(heapBytes)),
    Effect.orDie,
  )

/** Sends these so many times a second for so many seconds. */
const flood = (open: Open, frame: string, perSecond: number, seconds: number) =>
  Effect.gen(function* () {
    for (let second = 0; second < seconds; second++) {
      for (let step = 0; step < 10; step++) {
        open.send(...Array.from({ length: perSecond / 10 }, () => frame))
        yield* open.settled
        yield* TestClock.adjust("100 millis")
      }
    }
    yield* open.settled
  })

describe("an honest client is not limited", () => {
  it.effect.each([20, 10, 100].slice(0, runs(1, 3)))(
    "%i ms of audio at a time, at three times real time, and commands",
    (ms) =>
      withSocket((open) =>
        Effect.gen(function* () {
          const perSecond = 10 * Math.ceil((3 * 1000) / ms / 10)
          for (let at = 0; at < 60; at++) {
            yield* flood(open, append(ms), perSecond, 1)
            // Each second of audio is a turn; texts and cancels beside it.
            for (const type of [
              "input_audio_buffer.commit",
              "response.create",
              "response.cancel",
              "session.update",
            ])
              open.send(...Array.from({ length: 3 }, () => JSON.stringify({ type })))
          }
          yield* open.settled
          expect(yield* open.closed).toBeUndefined()
          expect(open.errors).toEqual([])
          expect(open.seen.handled).toBe(60 * (perSecond + 12))
        }),
      ),
  )

  it.effect("2,000 items at once, of a conversation that goes on", () =>
    withSocket((open) =>
      Effect.gen(function* () {
        open.send(...Array.from({ length: 1_990 }, () => '{"type":"conversation.item.create"}'))
        yield* open.settled
        expect([yield* open.closed, open.seen.handled]).toEqual([undefined, 1_990])
      }),
    ),
  )
})

describe("a client is limited that sends", () => {
  const closed = { code: 1008, reason: "too many events" }
  it.effect.each([
    ["commands", clear],
    ["commands that are padded", padded],
    ["audio of no samples that is padded", `${append(0).slice(0, -1)},"pad":"${"x".repeat(400)}"}`],
    ["mistakes", '{"type":"wrong"}'],
    ["what is no JSON", "x".repeat(400)],
  ] as const)("%s: closed after the burst, and told what is allowed", ([, frame]) =>
    withSocket((open) =>
      Effect.gen(function* () {
        yield* flood(open, frame, 1_000, 1)
        expect(yield* open.closed).toMatchObject(closed)
        // A hundred more in a tenth of a second, of which five were refilled.
        expect(open.seen.handled).toBeLessThanOrEqual(smallEvents.burst + smallEvents.perSecond)
        expect(open.errors.at(-1)).toMatchObject({ error: { code: "too_many_events", event_id: null } })
        expect(JSON.stringify(open.errors.at(-1))).toContain(`${smallEvents.perSecond} a second`)
      }),
    ),
  )

  it.effect("events that are too large to be read: a few at once", () =>
    withSocket((open) =>
      Effect.gen(function* () {
        const most = smallEvents.burst / tooLargeCost
        const cut = CutFrame.from(Buffer.from('{"event_id":"mine"')) as CutFrame
        open.send(...Array.from({ length: most }, () => cut))
        yield* open.settled
        expect([yield* open.closed, open.errors.length]).toEqual([undefined, most])
        expect(open.errors[0]).toEqual(["event", expect.stringContaining("is larger than"), "mine"])
        open.send(cut)
        yield* open.settled
        expect(yield* open.closed).toMatchObject(closed)
        expect(JSON.stringify(open.errors.at(-1))).toContain(`as ${tooLargeCost}.`)
      }),
    ),
  )

  it.effect("audio of half of what is free, 200 times a second", () =>
    withSocket((open) =>
      Effect.gen(function* () {
        yield* flood(open, append(freeAudioMs / 2), 200, 9)
        expect(yield* open.closed).toBeUndefined()
        yield* flood(open, append(freeAudioMs / 2), 200, 2)
        expect(yield* open.closed).toMatchObject(closed)
      }),
    ),
  )
})

describe("large events", () => {
  it.live("have their memory free as soon as they are handled or refused", () =>
    withSocket((open) =>
      Effect.gen(function* () {
        const frames = ["any", "wrong"].map(
          (type) => new TextFrame(Buffer.from(JSON.stringify({ type, text: "x".repeat(100_000) }))),
        )
        const broken = new TextFrame(Buffer.from(`{"type":"${"x".repeat(100_000)}`))
        open.send(...frames, broken)
        // They are read in slices.
        while (open.errors.length < 2) yield* Effect.promise(() => new Promise(setImmediate))
        yield* open.settled
        expect([...frames, broken].map(({ byteLength }) => byteLength)).toEqual([0, 0, 0])
        expect(open.errors).toEqual([
          ["type", "is wrong", null],
          ["event", expect.any(String), null],
        ])
      }),
    ),
  )

  it.effect("wait: of an item of 1.7 MB that is asked for 90 times a second, so much is sent", () =>
    withSocket((open) =>
      Effect.gen(function* () {
        const bytes = 1_700_000
        yield* flood(open, `{"type":"retrieve","bytes":${bytes}}`, 90, 60)
        const most = largeTraffic.burstBytes + 60 * largeTraffic.bytesPerSecond
        expect(open.seen.echoed).toBeGreaterThan(most - 2 * bytes)
        expect(open.seen.echoed).toBeLessThanOrEqual(most + 2 * bytes)
        // None is refused, and none is lost.
        expect([yield* open.closed, open.errors]).toEqual([undefined, []])
      }),
    ),
  )

  it.effect("padding is paid for", () =>
    withSocket((open) =>
      Effect.gen(function* () {
        const bytes = 1_000_000
        const audio = append(10)
        const frame = `${audio.slice(0, -1)}${" ".repeat(bytes)}}`
        yield* flood(open, frame, 10, 20)
        const most = largeTraffic.burstBytes + 20 * largeTraffic.bytesPerSecond
        expect(open.seen.handled * bytes).toBeLessThanOrEqual(most + 2 * bytes)
      }),
    ),
  )

  it.effect(
    "that the budget does not hold are refused with the client's event_id, and the socket goes on",
    () =>
      withSocket(
        (open) =>
          Effect.gen(function* () {
            const limit = 2 ** 20
            open.send(JSON.stringify({ type: "any", event_id: "mine", text: "x".repeat(limit) }))
            yield* open.settled
            expect(open.errors).toEqual([
              [
                "event",
                expect.stringMatching(/hold more than \d+ bytes.*delete items, end sockets or try again/),
                "mine",
              ],
            ])
            open.send('{"type":"any"}')
            yield* open.settled
            expect([open.seen.handled, yield* open.closed]).toEqual([1, undefined])
          }),
        // A quarter of the heap is shared, and a user may have half of it.
        8 * 2 ** 20,
      ),
  )
})

it.effect("what a socket holds is given back when it ends", () =>
  Effect.gen(function* () {
    const budget = realtimeBudget(2 ** 30)
    yield* Effect.scoped(
      Effect.gen(function* () {
        const share = yield* socketShare("user")
        share.held.keep(1_000)
        expect(budget.memory.held).toBeGreaterThan(1_000)
      }),
    ).pipe(Effect.provideService(CurrentRealtimeBudget, budget))
    expect(budget.memory.held).toBe(0)
  }),
)

it.effect("a socket that finds no memory is refused before its handshake", () =>
  Effect.gen(function* () {
    const refused = yield* Effect.exit(Effect.scoped(socketShare("user")))
    expect(JSON.stringify(refused)).toContain("MemoryPressure")
  }).pipe(Effect.provideService(CurrentRealtimeBudget, realtimeBudget(100_000))),
)
