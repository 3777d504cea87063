// What the gateway's thread does while models of the catalog detect speech and the ends of turns, beside the built-in detector: calls of networks
// on it are counted, its processor time is measured, and that of the models' processes. With generated weights: cost only, nothing of how well
// they hear.
import { stat } from "node:fs/promises"
import { Effect, Layer, Schema } from "effect"
import { Device } from "#actors/device/Device.ts"
import { NvidiaSmi } from "#actors/device/NvidiaSmi.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { ModelHearing } from "#api/live/ModelHearing.ts"
import { speechWeights } from "#audio/SpeechWeights.ts"
import { SpeechNetwork } from "#domain/activity/SpeechNetwork.ts"
import { TurnDetector, type TurnRules } from "#domain/audio/TurnDetector.ts"
import type { Deployment } from "#domain/models/Deployment.ts"
import { ModelEntry } from "#domain/models/ModelEntry.ts"
import { turnEndSamples } from "#engines/protocol/Detection.ts"
import { percentile } from "#harness/figures/Statistics.ts"
import { atMost, figure, type Part } from "#harness/report/Figure.ts"
import {
  DetectionModels,
  detectionModels,
  type SessionDetection,
} from "#services/detection/DetectionModels.ts"
import { type DetectionSize, detectionFiles } from "../sizes/detection/Detection.ts"
import { engineCpuUs } from "../support/EngineCpu.ts"
import { threadCpuMs } from "../support/Probe.ts"
import { answer, s16 } from "./Clips.ts"
import { rateHz } from "./Sounds.ts"

/** Samples of a client's event: 20 ms. */
const frame = rateHz / 50
const seconds = 20
/** Sessions whose audio is due at the same time. */
const together = 8

const decode = Schema.decodeUnknownSync(ModelEntry)

const deployment = async (size: DetectionSize): Promise<Deployment> => {
  const files = await detectionFiles(size)
  const entry = {
    id: size,
    kind: "detection",
    adapter: `${size}-onnx`,
    ownedBy: "bench",
    created: 1,
    files: {},
    price: {},
  }
  return { entry: decode(entry), files, sizeBytes: (await stat(files.model)).size }
}

/** Calls of the built-in networks on this thread. */
const counted = <A, E, R>(work: Effect.Effect<A, E, R>) =>
  Effect.suspend(() => {
    const { step } = SpeechNetwork.prototype
    let calls = 0
    SpeechNetwork.prototype.step = function (energies) {
      calls++
      return step.call(this, energies)
    }
    return Effect.map(work, (result) => ({ calls, result })).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          SpeechNetwork.prototype.step = step
        }),
      ),
    )
  })

/** Microseconds of this thread's processor time. */
const threadUs = (): number => 1_000 * threadCpuMs()

interface Stretch {
  readonly threadUs: number
  readonly engineUs: number
  readonly waitsMs: ReadonlyArray<number>
}

const rules: TurnRules = { silenceMs: 500, prefixMs: 300, threshold: 0.5 }

/** The audio through one session's detector in events of 20 ms, as Hearing does it. */
const session = (samples: Int16Array, { speech }: SessionDetection) =>
  Effect.gen(function* () {
    const model = speech === undefined ? undefined : new ModelHearing(speech)
    const turns = new TurnDetector(speechWeights, rules, 0, undefined, model?.scores)
    model?.begins(turns.aheadSamples)
    const waitsMs: Array<number> = []
    for (let at = 0; at + frame <= samples.length; at += frame) {
      const piece = samples.subarray(at, at + frame)
      if (model !== undefined) {
        const beganMs = performance.now()
        yield* model.hear(piece)
        waitsMs.push(performance.now() - beganMs)
        if (model.isOver) return yield* Effect.die(new Error("the model of speech did not answer"))
      }
      turns.push(piece)
    }
    return waitsMs
  })

const measured = <A>(work: Effect.Effect<A>) =>
  Effect.gen(function* () {
    const before = { thread: threadUs(), engine: engineCpuUs(process.pid) }
    const result = yield* work
    return {
      result,
      threadUs: threadUs() - before.thread,
      engineUs: engineCpuUs(process.pid) - before.engine,
    }
  })

const stretch = (samples: Int16Array, detection: SessionDetection, sessions: number) =>
  Effect.map(
    measured(
      Effect.all(
        Array.from({ length: sessions }, () => session(samples, detection)),
        { concurrency: "unbounded" },
      ),
    ),
    ({ engineUs, result, threadUs }): Stretch => ({
      threadUs: threadUs / (seconds * sessions),
      engineUs: engineUs / (seconds * sessions),
      waitsMs: result.flat(),
    }),
  )

const none: SessionDetection = { speech: undefined, turnEnds: undefined }

const measure = Effect.fnUntraced(function* (samples: Int16Array, rounds: number) {
  const { open } = yield* DetectionModels
  const detection = yield* open
  const { speech, turnEnds } = detection
  if (speech?.isReady() !== true || turnEnds?.isReady() !== true)
    return yield* Effect.die(new Error("the models have not loaded"))
  const repeated = (one: SessionDetection, sessions: number) =>
    Effect.gen(function* () {
      yield* stretch(samples, one, sessions)
      return yield* counted(
        Effect.forEach(Array.from({ length: rounds }), () => stretch(samples, one, sessions)),
      )
    })
  const builtIn = yield* repeated(none, 1)
  const alone = yield* repeated(detection, 1)
  const many = yield* repeated(detection, together)
  const turn = samples.slice(0, turnEndSamples)
  yield* turnEnds.detect({ samples: turn })
  const ends = yield* counted(
    Effect.forEach(Array.from({ length: rounds * 5 }), () =>
      Effect.gen(function* () {
        const beganMs = performance.now()
        const asked = yield* measured(turnEnds.detect({ samples: turn }))
        return { ...asked, tookMs: performance.now() - beganMs }
      }),
    ),
  )
  const of = (stretches: ReadonlyArray<Stretch>, key: "threadUs" | "engineUs") =>
    stretches.map((one) => one[key] / 1_000)
  const perSecond = (calls: number, sessions: number) => calls / (rounds * sessions * seconds)
  const waits = (stretches: ReadonlyArray<Stretch>) => stretches.flatMap(({ waitsMs }) => waitsMs)
  return [
    figure("built-in: calls of networks on the gateway's thread, a second", "", [
      perSecond(builtIn.calls, 1),
    ]),
    figure("built-in: the gateway's thread, a second of audio", "ms CPU", of(builtIn.result, "threadUs")),
    figure("Silero: calls of networks on the gateway's thread", "", [alone.calls], atMost(0)),
    figure("Silero: the gateway's thread, a second of audio", "ms CPU", of(alone.result, "threadUs")),
    figure("Silero: its process, a second of audio", "ms CPU", of(alone.result, "engineUs")),
    figure("Silero: an event of 20 ms waits, p50", "ms", [percentile(waits(alone.result), 0.5)]),
    figure("Silero: the same, p95", "ms", [percentile(waits(alone.result), 0.95)]),
    figure(
      `Silero, ${together} sessions: calls of networks on the gateway's thread`,
      "",
      [many.calls],
      atMost(0),
    ),
    figure(
      `Silero, ${together} sessions: the gateway's thread, a second of one's audio`,
      "ms CPU",
      of(many.result, "threadUs"),
    ),
    figure(
      `Silero, ${together} sessions: its process, a second of one's audio`,
      "ms CPU",
      of(many.result, "engineUs"),
    ),
    figure(`Silero, ${together} sessions: an event of 20 ms waits, p95`, "ms", [
      percentile(waits(many.result), 0.95),
    ]),
    figure("Smart Turn: calls of networks on the gateway's thread", "", [ends.calls], atMost(0)),
    figure(
      "Smart Turn: the gateway's thread, one silence",
      "ms CPU",
      ends.result.map((one) => one.threadUs / 1_000),
    ),
    figure(
      "Smart Turn: its process, one silence",
      "ms CPU",
      ends.result.map((one) => one.engineUs / 1_000),
    ),
    figure("Smart Turn: question to answer, p50", "ms", [
      percentile(
        ends.result.map(({ tookMs }) => tookMs),
        0.5,
      ),
    ]),
  ]
})

export const detectionCosts = (all: ReadonlyArray<Float32Array>, rounds: number): Effect.Effect<Part> =>
  Effect.gen(function* () {
    const deployments = yield* Effect.promise(() =>
      Promise.all((["silero-vad", "smart-turn"] as const).map(deployment)),
    )
    const samples = s16(answer(all, 9, seconds))
    const layer = detectionModels.pipe(
      Layer.provideMerge(ModelRegistry.layer(deployments)),
      Layer.provideMerge(Device.layer()),
      Layer.provide(NvidiaSmi.none),
    )
    return {
      title: "Detection by models: cost of the gateway's thread",
      method: `${seconds} s of speech in events of 20 ms through the detector of a session, one alone and ${together} at the same time, each event as soon as the one before is judged; generated weights of the published shapes in the models' own processes, one thread each. Says nothing of how well they hear.`,
      figures: yield* Effect.scoped(measure(samples, rounds)).pipe(Effect.provide(layer)),
    } satisfies Part
  })
