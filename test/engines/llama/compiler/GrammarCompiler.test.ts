// The compiler's thread: results, refusals, the limit of time, and what happens when the thread ends.
import { readdirSync, readFileSync } from "node:fs"
import { getPriority } from "node:os"
import { pathToFileURL } from "node:url"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Expression } from "#engines/grammar/Expression.ts"
import { Matcher } from "#engines/grammar/test/Matcher.ts"
import { CompilerThread } from "#engines/llama/compiler/CompilerThread.ts"
import { GrammarCompiler, type GrammarCompilerOptions } from "#engines/llama/compiler/GrammarCompiler.ts"
import { programFile } from "../../../support/process/CompiledCode.ts"
import type { TestRequest } from "./shapesMain.ts"

const openedWith = (
  limitMs: number,
  more: Pick<GrammarCompilerOptions, "minuteMs" | "nowMs"> = { minuteMs: 60_000 },
) =>
  Effect.acquireRelease(
    Effect.sync(
      () =>
        new GrammarCompiler<TestRequest>({
          program: pathToFileURL(programFile("test/engines/llama/compiler/shapesMain")),
          singleBytes: new Uint8Array(256).fill(1),
          limitMs,
          ...more,
        }),
    ),
    (compiler) => Effect.sync(() => compiler.close()),
  )
const opened = openedWith(300)

const a = { user: "a", organization: "1" }
const b = { user: "b", organization: "2" }

/** The only text of the grammar that the thread made. */
const textOf = (compiler: GrammarCompiler<TestRequest>, request: TestRequest, owner = a) =>
  Effect.map(compiler.compile(request, owner), (grammar) =>
    new TextDecoder().decode(new Matcher(grammar).shortest()),
  )

it.live("compiles on the thread, once for equal requests, and keeps what it compiled", () =>
  Effect.gen(function* () {
    const compiler = yield* opened
    const requests = [1, 1, 2, 1, 2].map((number) => textOf(compiler, { number }))
    expect(yield* Effect.all(requests, { concurrency: "unbounded" })).toEqual(["1", "1", "2", "1", "2"])
    expect(yield* textOf(compiler, { number: 1 })).toBe("1")
    expect(yield* textOf(compiler, { number: 3 })).toBe("3")
    expect(yield* textOf(compiler, { root: { kind: "text", text: "äöü" } })).toBe("äöü")
  }).pipe(Effect.scoped),
)

/** The priority of each thread of this process: the 17th value behind the name in /proc/self/task/ID/stat (proc(5)). */
const priorities = (): ReadonlyArray<number> =>
  readdirSync("/proc/self/task").flatMap((id) => {
    try {
      const stat = readFileSync(`/proc/self/task/${id}/stat`, "latin1")
      return [Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[16])]
    } catch {
      // The thread has ended.
      return []
    }
  })

it.live.runIf(process.platform === "linux")("compiles with a lower priority than other threads", () =>
  Effect.gen(function* () {
    const compiler = yield* opened
    yield* textOf(compiler, { number: 1 })
    expect(priorities()).toContain(Math.min(19, getPriority() + 5))
  }).pipe(Effect.scoped),
)

it.live("names the field of a request that has no grammar", () =>
  Effect.gen(function* () {
    const compiler = yield* opened
    const refused = yield* Effect.flip(compiler.compile({ misbehaves: "refuses" }, a))
    expect(refused).toEqual({ field: "format.type", detail: "is no type" })
    const endless = yield* Effect.flip(compiler.compile({ root: { kind: "choice", of: [] } }, a))
    expect(endless).toEqual({ field: "format", detail: "matches no finite text" })
  }).pipe(Effect.scoped),
)

it.live("names the field that took the longest when it ends a compilation", () =>
  Effect.gen(function* () {
    const compiler = yield* openedWith(600)
    const late = yield* Effect.flip(compiler.compile({ misbehaves: "loops in the second field" }, a))
    expect(late).toEqual({ field: "tools[1]", detail: "takes longer than 600 ms to compile" })
  }).pipe(Effect.scoped),
)

it.live("names the rule that has no grammar", () =>
  Effect.gen(function* () {
    const compiler = yield* opened
    const rule = (name: string): Expression => ({ kind: "rule", name })
    const text = (value: string): Expression => ({ kind: "text", text: value })
    const refusalOf = (second: Expression) =>
      Effect.flip(
        compiler.compile(
          {
            root: { kind: "sequence", of: [rule("first"), rule("second"), text(".")] },
            rules: { first: text("a"), second },
          },
          a,
        ),
      )
    expect(yield* refusalOf({ kind: "choice", of: [] })).toEqual({
      field: "second",
      detail: "matches no finite text",
    })
    expect((yield* refusalOf({ kind: "repeat", of: text("b"), least: 2 ** 25, most: undefined })).field).toBe(
      "second",
    )
    const circle = yield* refusalOf({
      kind: "choice",
      of: [{ kind: "sequence", of: [rule("second"), text("c")] }, text("d")],
    })
    expect(circle).toEqual({ field: "second", detail: 'the rule "second" begins with itself' })
  }).pipe(Effect.scoped),
)

it.live("ends a compilation after its time, and goes on with the others on a new thread", () =>
  Effect.gen(function* () {
    const compiler = yield* opened
    const [looped, thrown, other] = yield* Effect.all(
      [
        Effect.flip(compiler.compile({ misbehaves: "loops" }, a)),
        Effect.flip(compiler.compile({ misbehaves: "throws" }, a)),
        textOf(compiler, { number: 1 }),
      ],
      { concurrency: "unbounded" },
    )
    expect(looped).toEqual({ field: "", detail: "takes longer than 300 ms to compile" })
    expect(thrown).toEqual({ field: "", detail: "could not be compiled" })
    // Each of the two has cost a thread.
    expect(other).toBe("1")
  }).pipe(Effect.scoped),
)

it.live(
  "ends a compilation at a checkpoint after its time, and goes on with the others on the same thread",
  () =>
    Effect.gen(function* () {
      const compiler = yield* opened
      expect(yield* textOf(compiler, { number: 1 })).toBe("1")
      const late = yield* Effect.flip(compiler.compile({ works: 60_000 }, a))
      expect(late).toEqual({ field: "", detail: "takes longer than 300 ms to compile" })
      // It has served the two before, too.
      expect(yield* textOf(compiler, { number: 2 })).toBe("3")
    }).pipe(Effect.scoped),
)

it.live("lets a compilation wait and go on", () =>
  Effect.gen(function* () {
    const thread = yield* Effect.acquireRelease(
      Effect.sync(
        () =>
          new CompilerThread({
            program: pathToFileURL(programFile("test/engines/llama/compiler/shapesMain")),
            singleBytes: new Uint8Array(256).fill(1),
            limitMs: 60_000,
          }),
      ),
      (opened) => Effect.sync(() => opened.close("the test has ended")),
    )
    const pastMs = (ms: number) =>
      Effect.gen(function* () {
        while (thread.usedMs <= ms) yield* Effect.sleep(5)
      })
    thread.compile(JSON.stringify({ works: 60_000 }), () => {})
    yield* pastMs(20)
    thread.pause(true)
    // The slice in which it stands ends with one more reading, however late the system lets it end. One that goes on has a new one twice a
    // millisecond.
    const readings = new Set<number>()
    for (let look = 0; look < 20; look++) {
      readings.add(thread.usedMs)
      yield* Effect.sleep(10)
    }
    expect(readings.size).toBeLessThanOrEqual(2)
    const { usedMs } = thread
    thread.pause(false)
    yield* pastMs(usedMs)
  }).pipe(Effect.scoped),
)

it.live("lets a heavy user's compilation wait while another user's goes on", () =>
  Effect.gen(function* () {
    const compiler = yield* openedWith(2_000, { minuteMs: 5_000 })
    const order: Array<string> = []
    const ended = (user: string) => Effect.sync(() => order.push(user))
    // Both threads have started, and a is heavy.
    yield* Effect.all([textOf(compiler, { works: 600 }), textOf(compiler, { number: 1 }, b)], {
      concurrency: "unbounded",
    })
    // a's begins first and needs less.
    const costly = textOf(compiler, { works: 40, number: 2 }).pipe(Effect.andThen(ended("a")))
    const other = textOf(compiler, { works: 80, number: 3 }, b).pipe(Effect.andThen(ended("b")))
    yield* Effect.all([costly, other], { concurrency: "unbounded" })
    expect(order).toEqual(["b", "a"])
  }).pipe(Effect.scoped),
)

it.live("compiles nothing for callers that have left, and refuses when it is closed", () =>
  Effect.gen(function* () {
    const compiler = yield* opened
    const first = yield* Effect.forkChild(compiler.compile({ misbehaves: "loops" }, a))
    const left = yield* Effect.forkChild(compiler.compile({ number: 1 }, a))
    yield* Effect.yieldNow
    left.interruptUnsafe()
    yield* Effect.flip(compiler.compile({ misbehaves: "refuses" }, a))
    expect(first.pollUnsafe()?._tag).toBe("Failure")
    // On the second thread the refused request was the only one before.
    expect(yield* textOf(compiler, { number: 2 })).toBe("2")
    const waiting = yield* Effect.forkChild(Effect.flip(compiler.compile({ misbehaves: "loops" }, a)))
    yield* Effect.yieldNow
    compiler.close()
    expect((yield* Effect.flip(compiler.compile({ number: 3 }, a))).detail).toContain("unloaded")
    expect(waiting.pollUnsafe()).toBeDefined()
  }).pipe(Effect.scoped),
)

it.live("compiles another user's grammar beside the costly ones of a user, not behind them", () =>
  Effect.gen(function* () {
    const compiler = yield* openedWith(200)
    const order: Array<string> = []
    const ended = (user: string) => Effect.sync(() => order.push(user))
    const costly = [1, 2, 3, 4].map((number) =>
      Effect.flip(compiler.compile({ misbehaves: "loops", number }, a)).pipe(Effect.andThen(ended("a"))),
    )
    const other = textOf(compiler, { number: 6 }, b).pipe(Effect.andThen(ended("b")))
    yield* Effect.all([...costly, other], { concurrency: "unbounded" })
    // The first ends while the second thread starts, at most.
    expect(order.slice(0, 2)).toContain("b")
    expect(order).toHaveLength(5)
  }).pipe(Effect.scoped),
)

it.live(
  "starts a thread that a grammar has ended before its user's next one, and leaves the other thread to others",
  () =>
    Effect.gen(function* () {
      const compiler = yield* openedWith(200)
      // Both threads have started.
      yield* Effect.all([textOf(compiler, { number: 1 }), textOf(compiler, { number: 1 }, b)], {
        concurrency: "unbounded",
      })
      const costly = Effect.flip(compiler.compile({ misbehaves: "loops" }, a))
      const other = Effect.andThen(costly, textOf(compiler, { number: 3 }, b))
      const next = textOf(compiler, { number: 2 })
      // The second grammar of the other thread, and the first of the one that starts again.
      expect(yield* Effect.all([other, next], { concurrency: "unbounded" })).toEqual(["2", "1"])
    }).pipe(Effect.scoped),
)

it.live("gives a user a processor time a minute, which refused grammars spend too", () =>
  Effect.gen(function* () {
    let nowMs = 0
    const compiler = yield* openedWith(300, { minuteMs: 500, nowMs: () => nowMs })
    expect(yield* textOf(compiler, { number: 1 })).toBe("1")
    // Each takes 300 ms, of which a busy machine gives it a part of the processor.
    const loop = Effect.flip(compiler.compile({ misbehaves: "loops" }, a))
    while (!(yield* loop).detail.includes("a minute"));
    const refused = yield* Effect.flip(compiler.compile({ number: 2 }, a))
    expect(refused).toEqual({
      field: "",
      detail: expect.stringContaining("500 ms of processor time a minute"),
      retryAfterMs: expect.any(Number),
    })
    const { retryAfterMs = 0 } = refused
    expect(retryAfterMs).toBeGreaterThan(0)
    // What was compiled before is free, and so are other users.
    expect(yield* textOf(compiler, { number: 1 })).toBe("1")
    expect(yield* textOf(compiler, { number: 2 }, b)).toBe("1")
    // Then, and not before: how much is missing depends on how late the loops were ended. The wait is rounded up, and one more where the
    // fractions of its sum make a whole number slightly larger.
    nowMs += retryAfterMs - 2
    const stillRefused = yield* Effect.flip(compiler.compile({ number: 2 }, a))
    expect([1, 2, 3]).toContain(stillRefused.retryAfterMs)
    nowMs += 3
    expect(yield* textOf(compiler, { number: 2 })).toBe("2")
  }).pipe(Effect.scoped),
)

it.live("keeps what it compiled for its organization only", () =>
  Effect.gen(function* () {
    const compiler = yield* opened
    expect(yield* textOf(compiler, { number: 1 })).toBe("1")
    expect(yield* textOf(compiler, { number: 1 }, { user: "c", organization: a.organization })).toBe("1")
    expect(yield* textOf(compiler, { number: 1 }, b)).toBe("2")
  }).pipe(Effect.scoped),
)
