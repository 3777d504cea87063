// The transcription suite on generated weights of real size: a file and one window through the node beside
// the engine's native calls alone, and the node's default threads beside numbers that a catalog names.

import { availableParallelism } from "node:os"
import { Effect, type Scope } from "effect"
import {
  atLeast,
  atMost,
  figure,
  figureOf,
  type Goal,
  type Part,
  ratioTo,
  readingsOf,
  speedOver,
} from "#harness/report/Figure.ts"
import { type WhisperSize, whisperFiles } from "../sizes/whisper/Whisper.ts"
import { ChildFailed } from "../support/Child.ts"
import { besideCounts, countsTo } from "../support/DefaultThreads.ts"
import { startGateway } from "../support/Gateway.ts"
import { modelLoads, startBareOnnx } from "../support/ModelLoads.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import { type Suite, suite } from "../support/Suite.ts"
import { entryOf, model, type Recogniser } from "./Models.ts"
import { type Stage, startStage } from "./Stage.ts"

interface Plan {
  readonly file: RoundsPlan
  readonly window: RoundsPlan
  readonly defaults: RoundsPlan
  readonly load: RoundsPlan
}

/** Two to five minutes on two cores; the largest weights need most of it to load. */
const full: Plan = {
  file: { rounds: 7, withinMs: 60_000 },
  window: { rounds: 9, withinMs: 40_000 },
  defaults: { rounds: 7, withinMs: 45_000 },
  load: { rounds: 5, withinMs: 60_000 },
}

/** One round of each: a check that it works, with rough figures. */
const quick: Plan = {
  file: { rounds: 1, withinMs: 0 },
  window: { rounds: 2, withinMs: 4_000 },
  defaults: { rounds: 1, withinMs: 0 },
  load: { rounds: 1, withinMs: 0 },
}

const fileSeconds = 60
/** Seconds that the encoder takes at once. */
const windowSeconds = 30

/** Milliseconds from the request to the answer. */
const transcribeMs = (stage: Pick<Stage, "gateway" | "speakers">, seconds: number) =>
  stage.speakers
    .ask("hear", { target: stage.gateway.target, seconds, count: 1 })
    .pipe(Effect.map(([answer]) => (answer?.status === 200 ? answer.elapsedMs : Number.NaN)))

interface Comparison {
  readonly title: string
  readonly seconds: number
  readonly compare: typeof ratioTo
  readonly goal: Goal
}

const compared = (
  stage: Stage,
  threads: number,
  plan: RoundsPlan,
  { compare, goal, seconds, title }: Comparison,
): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const count = yield* stage.bare.ask("prepare", seconds)
    yield* stage.bare.ask("calls", seconds)
    const rounds = yield* repeatRounds(plan, () =>
      Effect.gen(function* () {
        const calls = yield* stage.bare.ask("calls", seconds)
        const engine = yield* stage.bare.ask("engine", seconds)
        return { calls, engine, node: yield* transcribeMs(stage, seconds) }
      }),
    )
    const of = (part: keyof (typeof rounds)[number]) => rounds.map((round) => round[part])
    const calls = readingsOf("native calls alone", "ms", of("calls"))
    const node = readingsOf("through the node", "ms", of("node"))
    return {
      title: `${title}, ${count} native calls, ${threads} threads`,
      method:
        "wall time alternately: the native calls alone (the same feeds, ONNX Runtime's own settings, the same threads), the " +
        "engine without a gateway, and a synchronous request with upload, decoding and answer",
      figures: [
        figure("engine alone", "ms", of("engine")),
        figureOf(calls),
        figureOf(node),
        compare(node, calls, goal),
      ],
    }
  })

const defaults = (
  stage: Stage,
  { catalogThreads, files, options, threads }: Recogniser,
  plan: RoundsPlan,
): Effect.Effect<Part, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const { speakers } = stage
    const nodeOf = (count: number | undefined) =>
      count === catalogThreads
        ? Effect.succeed({ gateway: stage.gateway, speakers })
        : Effect.gen(function* () {
            const entry = entryOf({ files, options, catalogThreads: count })
            const gateway = yield* startGateway({ models: [entry] })
            yield* transcribeMs({ gateway, speakers }, 4)
            return { gateway, speakers }
          })
    const counts = countsTo(threads)
    const nodes = yield* Effect.forEach([undefined, ...counts], nodeOf)
    const rounds = yield* repeatRounds(plan, () =>
      Effect.forEach(nodes, (node) => transcribeMs(node, windowSeconds)),
    )
    return {
      title: "The default number of threads",
      method: `a node each, alternately: a file of ${windowSeconds} s`,
      figures: besideCounts("", "ms", counts, rounds),
    }
  })

/** Long enough for a sentence, shorter than a window. */
const loadSeconds = 4

const loads = (
  { bare, speakers }: Stage,
  { files, options, threads }: Recogniser,
  plan: RoundsPlan,
): Effect.Effect<Part, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const calls = yield* bare.ask("prepare", loadSeconds)
    return yield* modelLoads(plan, {
      title: "Load to first transcript",
      method: `a file of ${loadSeconds} s, ${calls} native calls`,
      entry: { ...entryOf({ files, options, catalogThreads: undefined }), id: model },
      bare: Effect.gen(function* () {
        const library = yield* startBareOnnx
        const { decoder, encoder } = files
        yield* library.ask("transcribe", { encoder, decoder, threads, decoderCalls: calls - 1 })
      }),
      use: (gateway) =>
        Effect.filterOrFail(
          transcribeMs({ gateway, speakers }, loadSeconds),
          (elapsedMs) => !Number.isNaN(elapsedMs),
          () => new ChildFailed({ child: "edgewise serve", detail: "the file was not transcribed" }),
        ),
    })
  })

export const generated = <A>(make: () => Promise<A>): Effect.Effect<A, ChildFailed> =>
  Effect.tryPromise({
    try: make,
    catch: (cause) => new ChildFailed({ child: "generated weights", detail: String(cause) }),
  })

const windowComparison: Comparison = {
  title: "One window, 30 s",
  seconds: windowSeconds,
  compare: ratioTo,
  goal: atMost(1.1),
}

const fileComparison: Comparison = {
  title: `A file of ${fileSeconds} s`,
  seconds: fileSeconds,
  compare: speedOver,
  goal: atLeast(0.95),
}

/** Without `--threads` the floor has all cores, and the node chooses. */
export const sizedTranscriptionSuite = (size: WhisperSize): Suite =>
  suite({
    name: "transcription",
    plans: { full, quick },
    start: ({ profileDir, threads: catalogThreads }) =>
      Effect.gen(function* () {
        const files = yield* generated(() => whisperFiles(size))
        const threads = catalogThreads ?? availableParallelism()
        const recogniser: Recogniser = { files, options: {}, threads, catalogThreads }
        return { ...(yield* startStage({ recogniser, profileDir, warmUps: 2 })), recogniser }
      }),
    sections: {
      window: (stage, plan) => compared(stage, stage.recogniser.threads, plan.window, windowComparison),
      file: (stage, plan) => compared(stage, stage.recogniser.threads, plan.file, fileComparison),
      defaults: (stage, plan) => defaults(stage, stage.recogniser, plan.defaults),
      load: (stage, plan) => loads(stage, stage.recogniser, plan.load),
    },
    onlyNamed: ["load"],
  })
