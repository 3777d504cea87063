// The turns suite: what is taken for the user's speech and how soon. Runs the gateway's own detector on audio of known content, without
// sockets: how long a network takes is not part of it.
import { Effect } from "effect"
import { hopSamples } from "#domain/activity/BandEnergies.ts"
import { Prosody } from "#domain/activity/Prosody.ts"
import { percentile } from "#harness/figures/Statistics.ts"
import { atMost, figure, type Part } from "#harness/report/Figure.ts"
import { RandomNumbers } from "../../models/eval/Conditions.ts"
import { type Suite, suite } from "../support/Suite.ts"
import { answer, echoOf, s16, sentences } from "./Clips.ts"
import { detectionCosts } from "./Detection.ts"
import { hear, perMs, startsMs } from "./Hearing.ts"
import { type Folders, recorded } from "./Recorded.ts"
import { semanticEnds } from "./SemanticEnds.ts"
import { intrusion, rateHz } from "./Sounds.ts"
import { speech } from "./Speech.ts"

const untrained = { title: "Speech", what: "sentences of voices that were not trained" }

/** The seeds of the figures; others were used to choose the detector's constants. */
const firstSeed = 50_000

const sounds = (count: number): Part => {
  const found = Array.from({ length: count }, (_, i) => intrusion(firstSeed + i)).filter(
    ({ samples }) => hear(samples, 500).foundMs !== undefined,
  )
  const kinds = [...new Set(found.map(({ kind }) => kind))].join(", ")
  return {
    title: "Sounds that are not speech",
    method: `${count} clips of 5 s, peak -30 to -3 dBFS: keys, claps, doors, strings, birds, sirens, organ, rain, vacuum cleaner, telephone, traffic, noise. Taken for speech: ${kinds || "none"}.`,
    figures: [figure("taken for speech", `of ${count}`, [found.length], atMost(count / 100))],
  }
}

const echoes = (all: ReadonlyArray<Float32Array>, count: number): Part => {
  const figures = [-10, -20, -30].flatMap((decibels) => {
    let [interrupted, missed] = [0, 0]
    const late: Array<number> = []
    for (let i = 0; i < count; i++) {
      const random = new RandomNumbers(firstSeed + 7 * i)
      const played = answer(all, i * 3)
      const { heard } = echoOf(played, decibels, firstSeed + i)
      const microphone = new Float32Array(startsMs * perMs + heard.length)
      microphone.set(heard, startsMs * perMs)
      if (hear(s16(microphone), 500, played).foundMs !== undefined) interrupted++
      const user = all[(i * 3 + 40) % all.length]!
      const from = startsMs * perMs + Math.floor(random.between(0.8, 2.5) * rateHz)
      const loud = 10 ** (-random.between(4, 16) / 20)
      const both = microphone.map((sample, k) => sample + (user[k - from] ?? 0) * loud)
      const { foundMs } = hear(s16(both), 500, played)
      const lateMs = (foundMs ?? Number.POSITIVE_INFINITY) - from / perMs
      if (lateMs > 600) missed++
      else if (lateMs > 0) late.push(lateMs)
    }
    const goal = (value: number) => (decibels === -20 ? ({ is: "at most", value } as const) : undefined)
    return [
      figure(
        `${decibels} dB: answers interrupted by their echo`,
        `of ${count}`,
        [interrupted],
        goal(count / 20),
      ),
      figure(
        `${decibels} dB: users not heard over it within 600 ms`,
        `of ${count}`,
        [missed],
        goal(count / 100),
      ),
      figure(`${decibels} dB: user's first sample to detection, p50`, "ms", [percentile(late, 0.5)]),
      figure(`${decibels} dB: the same, p95`, "ms", [percentile(late, 0.95)]),
    ]
  })
  return {
    title: "The answer's echo",
    method: `${count} answers of 4 s, each the first of its conversation, with a delay of 0 to 500 ms, a room of 50 to 250 ms, a loudspeaker that distorts, and -80 dBFS of noise. Users have a peak of -16 to -4 dBFS and begin 0.8 to 2.5 s after the answer. Before its first echo nothing is known of the delay.`,
    figures,
  }
}

/** Users with headphones: nothing of the answer comes back, and each speaks three times while answers are played. */
const headphones = (all: ReadonlyArray<Float32Array>, count: number): Part => {
  let missed = 0
  const late: Array<number> = []
  for (let i = 0; i < count; i++) {
    const random = new RandomNumbers(firstSeed + 11 * i)
    const played = answer(all, i * 3, 14)
    const microphone = new Float32Array(16 * rateHz).map(() => random.between(-1e-4, 1e-4))
    const begins = [0, 1, 2].map(
      (turn) => startsMs * perMs + Math.floor(random.between(0.1, 1.5) * rateHz) + turn * 5 * rateHz,
    )
    begins.forEach((from, turn) => {
      const user = all[(i * 3 + 40 + turn) % all.length]!.subarray(0, 3 * rateHz)
      const loud = 10 ** (-random.between(4, 16) / 20)
      user.forEach((sample, k) => {
        microphone[from + k] = microphone[from + k]! + sample * loud
      })
    })
    const found = hear(s16(microphone), 500, played).starts
    for (const from of begins) {
      const fromMs = from / perMs
      const first = found.find(({ atMs }) => atMs > fromMs && atMs < fromMs + 4_000)
      const lateMs = (first?.atMs ?? Number.POSITIVE_INFINITY) - fromMs
      if (lateMs > 600) missed++
      else late.push(lateMs)
    }
  }
  return {
    title: "Users with headphones",
    method: `${count} conversations in which answers are played for 14 s and nothing of them comes back; three sentences of the user each, peak -16 to -4 dBFS, with -80 dBFS of noise.`,
    figures: [
      figure("users not heard within 600 ms", `of ${3 * count}`, [missed], atMost((3 * count) / 100)),
      figure("user's first sample to detection, p50", "ms", [percentile(late, 0.5)], atMost(100)),
      figure("the same, p95", "ms", [percentile(late, 0.95)], atMost(160)),
    ],
  }
}

const costs = (all: ReadonlyArray<Float32Array>, rounds: number): Part => {
  const played = answer(all, 5, 20)
  const samples = s16(answer(all, 9, 20))
  const hops = samples.length / (rateHz / 100)
  const micros = (run: () => void): ReadonlyArray<number> => {
    run()
    return Array.from({ length: rounds }, () => {
      const before = process.cpuUsage()
      run()
      const { system, user } = process.cpuUsage(before)
      return (system + user) / hops
    })
  }
  return {
    title: "Processor time of 10 ms of audio",
    method:
      "20 s of speech through the detector, alone, and with 20 s of speech that are played meanwhile and their comparison; pitch and loudness of the same.",
    figures: [
      figure(
        "detector",
        "µs",
        micros(() => void hear(samples, 500)),
        atMost(50),
      ),
      figure(
        "prosody of semantic_vad",
        "µs",
        micros(() => {
          const prosody = new Prosody()
          for (let at = 0; at + hopSamples <= samples.length; at += hopSamples) {
            prosody.push(samples.subarray(at, at + hopSamples))
          }
        }),
      ),
      figure(
        "detector and echo",
        "µs",
        micros(() => void hear(samples, 500, played)),
      ),
    ],
  }
}

interface Plan {
  /** Clips of each kind. */
  readonly count: number
  /** Every so many of the texts are asked about. */
  readonly everyText: number
  readonly rounds: number
}

/** Two minutes on one core. With folders, the recordings in them are measured in place of everything else. */
export const turnsSuite = (folders: Folders): Suite => {
  const isRecorded = folders.speech !== undefined || folders.sounds !== undefined
  return suite<ReadonlyArray<Float32Array>, Plan>({
    name: "turns",
    plans: {
      full: { count: 200, everyText: 1, rounds: 7 },
      quick: { count: 40, everyText: 5, rounds: 3 },
    },
    start: () => (isRecorded ? Effect.succeed([]) : Effect.orDie(sentences)),
    sections: isRecorded
      ? { recorded: (_, { count }) => Effect.sync(() => recorded(folders, count, firstSeed)) }
      : {
          sounds: (_, { count }) => Effect.sync(() => sounds(count)),
          speech: (all, { count }) => Effect.sync(() => speech({ ...untrained, all }, count, firstSeed)),
          echo: (all, { count }) => Effect.sync(() => echoes(all, count)),
          headphones: (all, { count }) => Effect.sync(() => headphones(all, count)),
          ends: (_, { everyText }) => semanticEnds(everyText),
          cost: (all, { rounds }) => Effect.sync(() => costs(all, rounds)),
          models: (all, { rounds }) => detectionCosts(all, rounds),
        },
  })
}
