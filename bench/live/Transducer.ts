// The live suite on generated transducers of real size: what the engine adds to its native calls, the time from `stop` to the
// final text, how many speakers are admitted, and the lag of their captions.
import { availableParallelism } from "node:os"
import { Effect } from "effect"
import {
  atLeast,
  atMost,
  figure,
  figureOf,
  ofEach,
  type Part,
  ratioTo,
  speedOver,
} from "#harness/report/Figure.ts"
import { type TransducerSize, transducerFiles } from "../sizes/transducer/Transducer.ts"
import { type Child, type ChildFailed, startChild } from "../support/Child.ts"
import { type Gateway, startGateway } from "../support/Gateway.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import { type Suite, suite } from "../support/Suite.ts"
import { generated } from "../transcription/Sized.ts"
import { attempt, type CapacityPlan, capacitySection, listenModel } from "./Sessions.ts"
import { Speaker } from "./Speaker.ts"
import { rateHz, speech } from "./Speech.ts"
import type { Transducer, TransducerCommands, Work } from "./transducerMain.ts"

interface Plan {
  readonly calls: RoundsPlan
  readonly fileSeconds: number
  readonly final: RoundsPlan
  readonly capacity: CapacityPlan
}

const full: Plan = {
  calls: { rounds: 5, withinMs: 240_000 },
  fileSeconds: 60,
  final: { rounds: 21, withinMs: 150_000 },
  capacity: { most: 12, everyMs: 5_000, watchedMs: 20_000 },
}

const quick: Plan = {
  calls: { rounds: 1, withinMs: 0 },
  fileSeconds: 12,
  final: { rounds: 1, withinMs: 0 },
  capacity: { most: 4, everyMs: 4_000, watchedMs: 8_000 },
}

/** As the weights are generated. */
const chunkSeconds = 0.56
const chunkMs = chunkSeconds * 1000
/** A chunk needs 40 samples behind it. */
const windows = { samples: chunkSeconds * rateHz, ahead: 40 }
/** Seconds of a session whose chunks are measured, and of one that is stopped. */
const sessionSeconds = chunkSeconds * 20
const stoppedSeconds = 4
/** Sessions end at this many places within a chunk, one after the other. */
const stops = 7
/** A caption may lag by a chunk and a quarter. */
const mostLagMs = 700

interface Stage {
  readonly bare: Child<TransducerCommands>
  readonly gateway: Gateway
  readonly threads: number
}

const compared = ({ bare, threads }: Stage, plan: RoundsPlan, work: Work): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const chunks = yield* bare.ask("prepare", work)
    yield* bare.ask("calls", work)
    const rounds = yield* repeatRounds(plan, () =>
      Effect.gen(function* () {
        const calls = yield* bare.ask("calls", work)
        return { calls, engine: yield* bare.ask("engine", work) }
      }),
    )
    const each = work.live ? chunks : 1
    const calls = ofEach(rounds, "native calls alone", "ms", (round) => round.calls / each)
    const engine = ofEach(rounds, "the engine", "ms", (round) => round.engine / each)
    return {
      title: work.live
        ? `One chunk of ${chunkMs} ms in a session, ${threads} threads`
        : `A file of ${work.seconds} s, ${chunks} chunks, ${threads} threads`,
      method:
        `wall time alternately: the native calls alone (the same feeds, ONNX Runtime's own settings, the same threads), and the ` +
        `engine without a gateway${work.live ? `, a request for each of ${chunks} chunks; a chunk in the mean` : ""}`,
      figures: [
        figureOf(calls),
        figureOf(engine),
        work.live ? ratioTo(engine, calls, atMost(1.1)) : speedOver(engine, calls, atLeast(0.95)),
      ],
    }
  })

/** Milliseconds from `stop` to the final result, sent in the moment in which the speaker is silent. */
const spokenFinalMs = async (gateway: Gateway, samples: Int16Array): Promise<number> => {
  const speaker = await Speaker.open(gateway.target, listenModel, windows)
  await speaker.speak(samples)
  const { ms } = await speaker.stop()
  speaker.close()
  return ms
}

const finalSection = ({ bare, gateway }: Stage, plan: RoundsPlan): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const samples = speech(stoppedSeconds + chunkSeconds)
    let stopped = 0
    const next = () =>
      samples.subarray(
        0,
        Math.round((stoppedSeconds + ((stopped++ % stops) / stops) * chunkSeconds) * rateHz),
      )
    const session = { seconds: sessionSeconds, live: true }
    const chunks = yield* bare.ask("prepare", session)
    yield* attempt(() => spokenFinalMs(gateway, next()))
    const rounds = yield* repeatRounds(plan, () =>
      Effect.gen(function* () {
        const chunk = (yield* bare.ask("engine", session)) / chunks
        return { chunk, stop: yield* attempt(() => spokenFinalMs(gateway, next())) }
      }),
    )
    const chunk = ofEach(rounds, "one chunk by the engine alone", "ms", (round) => round.chunk)
    const stop = ofEach(rounds, "stop to transcript.text.done", "ms", (round) => round.stop)
    const durations = stop.values.map((ms) => ms / chunkMs)
    return {
      title: "From stop to the final result",
      method:
        `sessions of ${stoppedSeconds} s and ${stops} parts of a chunk more, in real time through a node, with stop right behind the last ` +
        "frame: the rest of a chunk and half a second of silence are computed then; beside a chunk of the engine alone",
      figures: [
        figureOf(chunk),
        figureOf(stop),
        ratioTo(stop, chunk),
        figure(`  over the ${chunkMs} ms of a chunk`, "x", durations, atMost(1.2)),
      ],
    }
  })

export const transducerLiveSuite = (size: TransducerSize): Suite =>
  suite({
    name: "live",
    plans: { full, quick },
    start: ({ profileDir, threads = availableParallelism() }) =>
      Effect.gen(function* () {
        const files = yield* generated(() => transducerFiles(size))
        const bare = yield* startChild<TransducerCommands>({
          name: "bare calls",
          entry: new URL("./transducerMain.ts", import.meta.url),
        })
        yield* bare.ask("open", { files, threads, chunkSeconds } satisfies Transducer)
        const entry = {
          id: listenModel,
          kind: "transcription",
          adapter: "transducer-onnx",
          ownedBy: "bench",
          created: 1,
          files: Object.fromEntries(Object.entries(files).map(([role, source]) => [role, { source }])),
          options: {},
          runtime: { load: "start", threads },
          price: { perMinute: 4_000 },
        }
        return { bare, threads, gateway: yield* startGateway({ models: [entry], profileDir }) }
      }),
    died: ({ bare, gateway }) => Effect.raceFirst(bare.died, gateway.child.died),
    sections: {
      calls: (stage, { calls, fileSeconds }) =>
        Effect.all([
          compared(stage, calls, { seconds: fileSeconds, live: false }),
          compared(stage, calls, { seconds: sessionSeconds, live: true }),
        ]),
      final: (stage, plan) => finalSection(stage, plan.final),
      capacity: ({ gateway }, plan) =>
        capacitySection(gateway, plan.capacity, { speakers: atLeast(4), lagP95: atMost(mostLagMs) }, windows),
    },
  })
