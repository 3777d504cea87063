// The fuzz run: mutated inputs at a pace against a node that serves honest clients, what the clients notice of it and what is
// left of the node. Failures are written to a file with the seed and the indexes of the inputs.
import { writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Option, type Scope } from "effect"
import {
  atLeast,
  atMost,
  besideFloor,
  type Figure,
  figure,
  type Goal,
  type Part,
  readingsOf,
} from "#harness/report/Figure.ts"
import { type ChildFailed, startChild } from "../support/Child.ts"
import type { Gateway } from "../support/Gateway.ts"
import type { FuzzerCommands, Progress } from "./fuzzerMain.ts"
import type { HonestSeen } from "./honestMain.ts"
import { inputOf } from "./Inputs.ts"
import {
  decoderPids,
  engineRestarts,
  forgetPeak,
  isHealthy,
  resident,
  type Stage,
  startStage,
} from "./Stage.ts"

export interface FuzzPlan {
  readonly seed: number
  /** Indexes 0 to this, less one. */
  readonly inputs: number
  readonly perSecond: number
  /** What is not sent by then is left out. */
  readonly seconds: number
  readonly warmUpSeconds: number
  /** Before the inputs, and again after them. */
  readonly quietSeconds: number
}

const none: Goal = atMost(0)
const pollMs = 500
const mib = 1024 * 1024

const startFuzzer = startChild<FuzzerCommands>({
  name: "fuzzer",
  entry: new URL("./fuzzerMain.ts", import.meta.url),
})

const nothing: Progress = { done: 0, finished: false, tally: [], wrong: [], recent: [] }
const noTimes = { count: 0, p50: 0, p95: 0, p99: 0, max: 0 }
const unseen: HonestSeen = {
  chat: noTimes,
  text: noTimes,
  schema: noTimes,
  answered: 0,
  failed: 0,
  refused: 0,
  reasons: [],
}

/** Sends the inputs of a range; ends early with the node, or when the time is over. */
const send = (
  stage: Stage,
  plan: Pick<FuzzPlan, "seed" | "perSecond" | "seconds"> & { readonly from: number; readonly to: number },
) =>
  Effect.gen(function* () {
    const fuzzer = yield* startFuzzer
    const decoders = new Set(decoderPids(stage.gateway))
    const decodersBefore = decoders.size
    const { from, perSecond, seed, to } = plan
    yield* fuzzer.ask("start", { target: stage.attacker, seed, from, to, perSecond })
    const untilMs = performance.now() + plan.seconds * 1000
    let progress = nothing
    let alive = true
    while (alive && !progress.finished && performance.now() < untilMs) {
      yield* Effect.sleep(pollMs)
      progress = (yield* fuzzer.ask("progress")) ?? nothing
      for (const pid of decoderPids(stage.gateway)) decoders.add(pid)
      alive = yield* Effect.match(stage.gateway.child.ask("cpu"), {
        onFailure: () => false,
        onSuccess: () => true,
      })
    }
    yield* fuzzer.ask("stop")
    return { progress, alive, decodersStarted: decoders.size - decodersBefore }
  })

const writeFailures = (plan: FuzzPlan, failures: object) =>
  Effect.promise(async () => {
    const path = join(tmpdir(), `edgewise-hostile-${plan.seed}.json`)
    await writeFile(path, JSON.stringify({ seed: plan.seed, ...failures }, undefined, 2))
    console.error(`what failed is in ${path}; --seed ${plan.seed} --only INDEX sends one input again`)
  })

/** Characters of what a crashed process wrote that are printed. */
const shownCharacters = 4_000

/** How the gateway ended, by signal or status, and what it wrote last. */
const endOf = ({ child }: Gateway): Effect.Effect<string> =>
  Effect.map(Effect.timeoutOption(Effect.flip(child.died), 1_000), (ended) =>
    Option.match(ended, {
      onNone: () => "runs, and does not answer",
      onSome: ({ detail }) => detail.slice(0, 40) + detail.slice(40).slice(-shownCharacters),
    }),
  )

const outcomes = ({ tally }: Progress): Part => ({
  title: "What inputs were answered, by what was mutated",
  method:
    "the status of the first answer; silent: the node waits for the rest of a broken request; closed: closed without " +
    "an answer; open and closed: what became of a WebSocket 60 ms after its last frame",
  figures: [...tally]
    .sort((a, b) => a.kind.localeCompare(b.kind) || b.count - a.count)
    .map(({ count, kind, outcome }) => figure(`${kind}: ${outcome}`, "inputs", [count])),
})

const worse = (a: HonestSeen, b: HonestSeen): number => Math.max(a.chat.p99, b.chat.p99)

export const fuzz = (plan: FuzzPlan): Effect.Effect<ReadonlyArray<Part>, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const stage = yield* startStage({ warmUpSeconds: plan.warmUpSeconds, whenFull: "try again" })
    const { gateway, honest } = stage
    const take = Effect.map(honest.ask("take"), (seen) => seen ?? unseen)
    yield* Effect.sleep(plan.quietSeconds * 1000)
    const before = yield* take
    const memoryBefore = yield* gateway.child.ask("memory")
    yield* Effect.promise(() => forgetPeak(gateway.child.pid))
    const restartsBefore = yield* engineRestarts(gateway)
    yield* gateway.child.ask("watchLoop")
    yield* take

    const { alive, decodersStarted, progress } = yield* send(stage, { ...plan, from: 0, to: plan.inputs })
    const during = yield* take
    const { peak } = yield* Effect.promise(() => resident(gateway.child.pid))
    const loop = alive ? yield* gateway.child.ask("loopDelay") : undefined
    if (alive) yield* Effect.sleep(plan.quietSeconds * 1000)
    const after = yield* take
    const rest = (yield* honest.ask("stop")) ?? unseen
    const healthy = yield* isHealthy(gateway)
    const memory = healthy ? yield* gateway.child.ask("memory") : undefined
    const restarts = healthy ? (yield* engineRestarts(gateway)) - restartsBefore : Number.NaN

    const all = [before, during, after, rest]
    const sum = (of: "failed" | "answered" | "refused") => all.reduce((total, seen) => total + seen[of], 0)
    const failed = sum("failed")
    const answered = sum("answered")
    const reasons = all.flatMap((seen) => seen.reasons)
    if (!healthy || failed > 0 || progress.wrong.length > 0) {
      const { recent, wrong } = progress
      const log = (yield* gateway.child.output).split("\n").filter((line) => line.startsWith("{"))
      for (const reason of reasons) console.error(`honest request: ${reason}`)
      if (!healthy) console.error(`the gateway ${yield* endOf(gateway)}`)
      yield* writeFailures(plan, { healthy, wrong, honest: reasons, recent: healthy ? [] : recent, log })
    }
    const figures: ReadonlyArray<Figure> = [
      figure("seed", "", [plan.seed]),
      figure("inputs with an outcome", "inputs", [progress.done], atLeast(plan.inputs)),
      figure("crashes of the gateway, or /health without an answer", "", [alive && healthy ? 0 : 1], none),
      figure("answers 500, and none where one was due", "inputs", [progress.wrong.length], none),
      figure(`honest requests that failed, of ${answered + failed}`, "", [failed], none),
      figure("honest live sessions refused for lack of capacity (503), which tried again", "", [
        sum("refused"),
      ]),
      ...besideFloor(
        readingsOf("honest chat, 99th percentile, quiet (the higher of before and after)", "ms", [
          worse(before, after),
        ]),
        readingsOf("honest chat, 99th percentile, beside the inputs", "ms", [during.chat.p99]),
      ),
      figure("most own work in one tick of the gateway's event loop", "ms", [
        loop?.longestWork ?? Number.NaN,
      ]),
      figure("resident memory of the gateway, grown by (collected)", "MiB", [
        ((memory?.residentBytes ?? Number.NaN) - memoryBefore.residentBytes) / mib,
      ]),
      figure("  its peak, less what was resident before", "MiB", [(peak - memoryBefore.residentBytes) / mib]),
      figure("engine processes restarted", "", [restarts]),
      figure("decoder processes started", "", [decodersStarted]),
    ]
    const inputsTitle = `${plan.inputs} mutated inputs in at most ${plan.seconds} s, seed ${plan.seed}`
    return [
      {
        title: inputsTitle,
        method:
          "one node with fake engines, the demonstration text weights and real decoders; the attacker has a key of its own " +
          "and the lowest priority; honest chat every 25 ms, and each second speech, a transcription and a live session",
        figures,
      },
      outcomes(progress),
    ]
  })

/** The bytes as one line, whatever is in them. */
const shown = (bytes: Buffer): string => JSON.stringify(bytes.toString("latin1").slice(0, 4_096))

/** One input of a seed again, with its bytes. */
export const replay = (
  seed: number,
  index: number,
): Effect.Effect<ReadonlyArray<Part>, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const stage = yield* startStage()
    const input = inputOf(seed, index)
    const { progress } = yield* send(stage, { seed, from: index, to: index + 1, perSecond: 1, seconds: 30 })
    const healthy = yield* isHealthy(stage.gateway)
    const frames = input.frames === undefined ? "" : `\n  frames ${shown(input.frames)}`
    return [
      {
        title: `Input ${index} of seed ${seed}: ${input.kind}, in ${input.pieces} pieces`,
        method: `${shown(input.bytes)}${frames}`,
        figures: [
          ...outcomes(progress).figures,
          figure("crashes of the gateway, or /health without an answer", "", [healthy ? 0 : 1], none),
        ],
      },
    ]
  })
