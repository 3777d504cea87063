// The speech suite on generated weights of real size: first audio and speed of a node beside the engine
// alone, and the node's default threads beside numbers that a catalog names.

import { availableParallelism } from "node:os"
import { Effect, type Scope } from "effect"
import { speak } from "#harness/client/SpeechRequest.ts"
import {
  atLeast,
  atMost,
  beyond,
  figureOf,
  ofEach,
  type Part,
  speedOver,
  times,
} from "#harness/report/Figure.ts"
import { type KokoroSize, kokoroFiles } from "../sizes/kokoro/Kokoro.ts"
import { asked, neverAborted, serverOf } from "../support/Ask.ts"
import { type Child, type ChildFailed, startChild } from "../support/Child.ts"
import { besideCounts } from "../support/DefaultThreads.ts"
import { type Gateway, startGateway } from "../support/Gateway.ts"
import { modelLoads, startBareOnnx } from "../support/ModelLoads.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import { type Suite, suite } from "../support/Suite.ts"
import { generated } from "../transcription/Sized.ts"
import type { BareEngineCommands } from "./bareEngineMain.ts"
import { kokoroEntry, sentence, textOf, voice } from "./Models.ts"

interface Plan {
  readonly first: RoundsPlan
  readonly speed: RoundsPlan
  readonly defaults: RoundsPlan
  readonly load: RoundsPlan
}

const full: Plan = {
  first: { rounds: 11, withinMs: 40_000 },
  speed: { rounds: 7, withinMs: 60_000 },
  defaults: { rounds: 7, withinMs: 45_000 },
  load: { rounds: 5, withinMs: 60_000 },
}
const quick: Plan = {
  first: { rounds: 3, withinMs: 6_000 },
  speed: { rounds: 1, withinMs: 0 },
  defaults: { rounds: 1, withinMs: 0 },
  load: { rounds: 1, withinMs: 0 },
}

const text = textOf(300)
interface Heard {
  readonly firstMs: number
  readonly allMs: number
  readonly audioMs: number
}

/** One request in the bench's own process: it reads bytes and records two times. */
const timedReply = ({ target }: Gateway, input: string, stream: boolean): Effect.Effect<Heard, ChildFailed> =>
  asked(async () => {
    const request = { model: "demo", voice, input, format: "pcm", rateHz: 24_000, playerBufferMs: 0 } as const
    const beganMs = performance.now()
    const { figures } = await speak(
      serverOf(target),
      { ...request, fields: { stream } },
      beganMs,
      neverAborted,
    )
    const { audio = Number.NaN, e2e = Number.NaN, first_byte: firstMs = Number.NaN } = figures
    return { firstMs, allMs: e2e, audioMs: 1000 * audio }
  })

/** The goal: at most this times the bare engine's first piece, plus 5 ms. */
const allowedRatio = 1.15

const firstAudio = (gateway: Gateway, bare: Child<BareEngineCommands>, plan: RoundsPlan) =>
  Effect.gen(function* () {
    const rounds = yield* repeatRounds(plan, () =>
      Effect.gen(function* () {
        const { firstPieceMs } = yield* bare.ask("once", sentence)
        return { bare: firstPieceMs, node: (yield* timedReply(gateway, sentence, true)).firstMs }
      }),
    )
    const engine = ofEach(rounds, "engine alone, first piece", "ms", (round) => round.bare)
    const node = ofEach(rounds, "pcm stream, first audio", "ms", (round) => round.node)
    const part: Part = {
      title: `First audio of ${sentence.length} characters`,
      method: "alternately: the engine alone to its first piece, and a pcm stream to its first bytes",
      figures: [figureOf(engine), figureOf(node), beyond(node, times(allowedRatio, engine), atMost(5))],
    }
    return part
  })

const speed = (gateway: Gateway, bare: Child<BareEngineCommands>, plan: RoundsPlan) =>
  Effect.gen(function* () {
    const rounds = yield* repeatRounds(plan, () =>
      Effect.gen(function* () {
        const { realTimeFactor } = yield* bare.ask("once", text)
        const { allMs, audioMs } = yield* timedReply(gateway, text, false)
        return { bare: realTimeFactor, node: allMs / audioMs }
      }),
    )
    const engine = ofEach(rounds, "engine alone", "s/s", (round) => round.bare)
    const node = ofEach(rounds, "through the node", "s/s", (round) => round.node)
    const part: Part = {
      title: `Real-time factor, ${text.length} characters`,
      method:
        "alternately: computing time of the engine alone, and wall time of a whole reply, over the speech's length",
      figures: [figureOf(engine), figureOf(node), speedOver(node, engine, atLeast(0.95))],
    }
    return part
  })

const defaults = (
  gateway: Gateway,
  files: Readonly<Record<string, string>>,
  catalogThreads: number | undefined,
  threads: number,
  plan: RoundsPlan,
): Effect.Effect<Part, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const node = (count?: number) => startGateway({ models: [kokoroEntry(files, count)] })
    const counts = threads === 1 ? [1] : [1, threads]
    const others = yield* Effect.forEach(counts, (count) =>
      count === catalogThreads ? Effect.succeed(gateway) : node(count),
    )
    const nodes = [catalogThreads === undefined ? gateway : yield* node(), ...others]
    yield* Effect.forEach(nodes, (each) => timedReply(each, sentence, false))
    const rounds = yield* repeatRounds(plan, () =>
      Effect.forEach(nodes, (each) => Effect.map(timedReply(each, sentence, false), ({ allMs }) => allMs)),
    )
    return {
      title: "The default number of threads",
      method: `a node each, alternately: ${sentence.length} characters`,
      figures: besideCounts("", "ms", counts, rounds),
    }
  })

const loads = (
  engine: Child<BareEngineCommands>,
  files: Readonly<Record<"model", string>> & Readonly<Record<string, string>>,
  threads: number,
  plan: RoundsPlan,
): Effect.Effect<Part, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const input = yield* engine.ask("firstInput", sentence)
    return yield* modelLoads(plan, {
      title: "Load to the audio of a sentence",
      method: `${sentence.length} characters, ${input.symbols.length} symbols`,
      entry: kokoroEntry(files),
      bare: Effect.gen(function* () {
        const library = yield* startBareOnnx
        yield* library.ask("speak", { ...input, model: files.model, threads })
      }),
      use: (gateway) => timedReply(gateway, sentence, true),
    })
  })

/** Without `--threads` the engine alone has all cores, and the node chooses. */
export const sizedSpeechSuite = (size: KokoroSize): Suite =>
  suite({
    name: "speech",
    plans: { full, quick },
    start: ({ profileDir, threads: catalogThreads }) =>
      Effect.gen(function* () {
        const threads = catalogThreads ?? availableParallelism()
        const files = yield* generated(() => kokoroFiles(size))
        const bare = yield* startChild<BareEngineCommands>({
          name: "bare engine",
          entry: new URL("./bareEngineMain.ts", import.meta.url),
        })
        yield* bare.ask("open", { files, threads, spins: catalogThreads === undefined })
        const gateway = yield* startGateway({ models: [kokoroEntry(files, catalogThreads)], profileDir })
        yield* bare.ask("once", sentence)
        yield* timedReply(gateway, sentence, true)
        return { gateway, bare, files, catalogThreads, threads }
      }),
    sections: {
      first: ({ bare, gateway }, plan) => firstAudio(gateway, bare, plan.first),
      speed: ({ bare, gateway }, plan) => speed(gateway, bare, plan.speed),
      defaults: ({ catalogThreads, files, gateway, threads }, plan) =>
        defaults(gateway, files, catalogThreads, threads, plan.defaults),
      load: ({ bare, files, threads }, plan) => loads(bare, files, threads, plan.load),
    },
    onlyNamed: ["load"],
  })
