// The compiler's thread: results, refusals, the limit of time, and what happens when the thread ends.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { GrammarCompiler } from "#engines/llama/grammar/compile/GrammarCompiler.ts"
import type { Expression } from "#engines/llama/grammar/Expression.ts"
import { Matcher } from "#engines/llama/grammar/match/Matcher.ts"
import type { TestRequest } from "./shapesMain.ts"

const openedWith = (limitMs: number) =>
  Effect.acquireRelease(
    Effect.sync(
      () =>
        new GrammarCompiler<TestRequest>({
          program: new URL("./shapesMain.ts", import.meta.url),
          singleBytes: new Uint8Array(256).fill(1),
          limitMs,
        }),
    ),
    (compiler) => Effect.sync(() => compiler.close()),
  )
const opened = openedWith(600)

/** The only text of the grammar that the thread made. */
const textOf = (compiler: GrammarCompiler<TestRequest>, request: TestRequest) =>
  Effect.map(compiler.compile(request), (grammar) =>
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

it.live("names the field of a request that has no grammar", () =>
  Effect.gen(function* () {
    const compiler = yield* opened
    const refused = yield* Effect.flip(compiler.compile({ misbehaves: "refuses" }))
    expect(refused).toEqual({ field: "format.type", detail: "is no type" })
    const endless = yield* Effect.flip(compiler.compile({ root: { kind: "choice", of: [] } }))
    expect(endless).toEqual({ field: "format", detail: "matches no finite text" })
  }).pipe(Effect.scoped),
)

it.live("names the field that took the longest when it ends a compilation", () =>
  Effect.gen(function* () {
    const compiler = yield* openedWith(1_000)
    const late = yield* Effect.flip(compiler.compile({ misbehaves: "loops in the second field" }))
    expect(late).toEqual({ field: "tools[1]", detail: "takes longer than 1000 ms to compile" })
  }).pipe(Effect.scoped),
)

it.live("names the rule that has no grammar", () =>
  Effect.gen(function* () {
    const compiler = yield* opened
    const rule = (name: string): Expression => ({ kind: "rule", name })
    const text = (value: string): Expression => ({ kind: "text", text: value })
    const refusalOf = (second: Expression) =>
      Effect.flip(
        compiler.compile({
          root: { kind: "sequence", of: [rule("first"), rule("second"), text(".")] },
          rules: { first: text("a"), second },
        }),
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
        Effect.flip(compiler.compile({ misbehaves: "loops" })),
        Effect.flip(compiler.compile({ misbehaves: "throws" })),
        textOf(compiler, { number: 1 }),
      ],
      { concurrency: "unbounded" },
    )
    expect(looped).toEqual({ field: "", detail: "takes longer than 600 ms to compile" })
    expect(thrown).toEqual({ field: "", detail: "could not be compiled" })
    // Each of the two has cost a thread.
    expect(other).toBe("1")
  }).pipe(Effect.scoped),
)

it.live("compiles nothing for callers that have left, and refuses when it is closed", () =>
  Effect.gen(function* () {
    const compiler = yield* opened
    const first = yield* Effect.forkChild(compiler.compile({ misbehaves: "loops" }))
    const left = yield* Effect.forkChild(compiler.compile({ number: 1 }))
    yield* Effect.yieldNow
    left.interruptUnsafe()
    yield* Effect.flip(compiler.compile({ misbehaves: "refuses" }))
    expect(first.pollUnsafe()?._tag).toBe("Failure")
    // On the second thread the refused request was the only one before.
    expect(yield* textOf(compiler, { number: 2 })).toBe("2")
    const waiting = yield* Effect.forkChild(Effect.flip(compiler.compile({ misbehaves: "loops" })))
    yield* Effect.yieldNow
    compiler.close()
    expect((yield* Effect.flip(compiler.compile({ number: 3 }))).detail).toContain("unloaded")
    expect(waiting.pollUnsafe()).toBeDefined()
  }).pipe(Effect.scoped),
)
