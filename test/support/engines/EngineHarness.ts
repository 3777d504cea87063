// Runs an engine in the test's own process: an outlet that collects the units of a request, and requests with defaults. Works with
// any engine.
import { Deferred, Effect, Exit, Fiber } from "effect"
import type {
  ChatTurn,
  EngineDescriptor,
  EngineError,
  EngineSpec,
  GenerateEnd,
  GenerateRequest,
  GenerateStarted,
  Outlet,
  TextDelta,
  TextEngine,
} from "#engines/protocol/Engine.ts"
import type { EngineKind, Started, Unit } from "#engines/protocol/Verbs.ts"

export const engineSpec = (
  adapter: string,
  files: EngineSpec["files"],
  options: EngineSpec["options"] = {},
): EngineSpec => ({ modelId: "test", adapter, files, options, threads: 1 })

/** Loads a text engine in the caller's scope. */
export const openText = Effect.fnUntraced(function* (
  descriptor: EngineDescriptor,
  files: EngineSpec["files"],
  options: EngineSpec["options"] = {},
) {
  const engine = yield* descriptor.acquire(engineSpec(descriptor.adapter, files, options))
  if (engine.kind !== "text") return yield* Effect.die(new Error(`${descriptor.adapter} is no text engine`))
  return engine
})

/** An outlet that keeps all units and can be paused. */
export class CollectingOutlet<K extends EngineKind> implements Outlet<K> {
  readonly startedWith: Array<Started<K>> = []
  readonly units: Array<Unit<K>> = []
  readonly #waiting: Array<{ readonly count: number; readonly reached: Deferred.Deferred<void> }> = []
  #gate: Deferred.Deferred<void> | undefined

  readonly started = (facts: Started<K>): void => {
    this.startedWith.push(facts)
    this.#wake()
  }
  readonly push = (unit: Unit<K>): void => {
    this.units.push(unit)
    this.onPush(unit)
    this.#wake()
  }
  /** Called at each unit, synchronously. */
  onPush: (unit: Unit<K>) => void = () => {}

  readonly paused = (): boolean => this.#gate !== undefined
  readonly resumed: Effect.Effect<void> = Effect.suspend(() =>
    this.#gate === undefined ? Effect.void : Deferred.await(this.#gate),
  )
  pause(): void {
    this.#gate ??= Deferred.makeUnsafe<void>()
  }
  resume(): void {
    const gate = this.#gate
    this.#gate = undefined
    if (gate !== undefined) Deferred.doneUnsafe(gate, Exit.void)
  }

  /** Completes when `count` units have been pushed; 0 waits for `started`. */
  reached(count: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      const reached = Deferred.makeUnsafe<void>()
      this.#waiting.push({ count, reached })
      this.#wake()
      return Deferred.await(reached)
    })
  }

  #wake(): void {
    if (this.startedWith.length === 0) return
    for (const { count, reached } of this.#waiting)
      if (this.units.length >= count) Deferred.doneUnsafe(reached, Exit.void)
  }
}

export const greedy = {
  temperature: 0,
  topP: 1,
  topK: 0,
  frequencyPenalty: 0,
  presencePenalty: 0,
  seed: 0,
} as const

/** A chat of messages, or a user's single message, or `{ text }` for a plain prompt. */
export const textRequest = (
  prompt: string | ReadonlyArray<ChatTurn> | { readonly text: string },
  changes: Partial<Omit<GenerateRequest, "prompt" | "sampling">> & {
    readonly sampling?: Partial<GenerateRequest["sampling"]>
  } = {},
): GenerateRequest => ({
  prompt:
    typeof prompt === "string"
      ? { turns: [{ role: "user", content: prompt }] }
      : "text" in prompt
        ? prompt
        : { turns: prompt },
  maxTokens: 48,
  stop: [],
  ...changes,
  sampling: { ...greedy, ...changes.sampling },
})

export interface Generated {
  readonly text: string
  readonly started: GenerateStarted
  readonly end: GenerateEnd
  readonly deltas: ReadonlyArray<TextDelta>
}

export type TextOutlet = CollectingOutlet<"text">
export const textOutlet = (): TextOutlet => new CollectingOutlet<"text">()

export const textOf = (outlet: TextOutlet): string => outlet.units.map(({ text }) => text).join("")

/** One whole reply. */
export const generateText = Effect.fnUntraced(function* (
  engine: TextEngine,
  request: GenerateRequest,
): Effect.fn.Return<Generated, EngineError> {
  const outlet = textOutlet()
  const end = yield* engine.generate(request, outlet)
  return { text: textOf(outlet), started: outlet.startedWith[0]!, end, deltas: outlet.units }
})

/** A running reply, and its outlet. `reached` completes when that many deltas have arrived, and fails if the reply fails first. */
export const startText = Effect.fnUntraced(function* (
  engine: TextEngine,
  request: GenerateRequest,
  outlet: TextOutlet = textOutlet(),
) {
  const fiber: Fiber.Fiber<GenerateEnd, EngineError> = yield* Effect.forkChild(
    engine.generate(request, outlet),
    { startImmediately: true },
  )
  const died = Fiber.join(fiber).pipe(
    Effect.orDie,
    Effect.andThen(Effect.die(new Error("the reply ended first"))),
  )
  const reached = (count: number) => Effect.raceFirst(outlet.reached(count), died)
  return { fiber, outlet, reached }
})
