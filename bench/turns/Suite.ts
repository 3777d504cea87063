// The turns suite: what is taken for the user's speech and how soon. Runs the gateway's own detector on audio of known content, without
// sockets: how long a network takes is not part of it.
import { Effect } from "effect"
import { speechWeights } from "#audio/SpeechWeights.ts"
import { HOP_SAMPLES } from "#domain/activity/BandEnergies.ts"
import { EchoDetector } from "#domain/activity/EchoDetector.ts"
import { PlayedAudio } from "#domain/activity/PlayedAudio.ts"
import { Prosody } from "#domain/activity/Prosody.ts"
import { defaultRules, VoiceActivityDetector } from "#domain/audio/VoiceActivityDetector.ts"
import { RandomNumbers } from "../models/Conditions.ts"
import { finding, type Section } from "../support/Findings.ts"
import { answer, echoOf, s16, sentences, spoken } from "./Clips.ts"
import { semanticEnds } from "./SemanticEnds.ts"
import { intrusion, rateHz } from "./Sounds.ts"

/** Samples of a client's event: 20 ms. */
const frame = rateHz / 50
const perMs = rateHz / 1000
/** The answer begins so long after the audio, and audio is sent so far ahead of its play. */
const startsMs = 500
const aheadMs = 1_000
/** The seeds of the figures; others were used to choose the detector's constants. */
const firstSeed = 50_000

interface Heard {
  /** When the first speech was found, and when the last ended, milliseconds; positions by the detector. */
  readonly foundMs: number | undefined
  readonly stoppedAtMs: number | undefined
  /** Each start: when it was found, and where the detector says that the speech began. */
  readonly starts: ReadonlyArray<{ readonly atMs: number; readonly fromMs: number }>
}

const hear = (samples: Int16Array, silenceMs: number, played?: Float32Array): Heard => {
  const reference = new PlayedAudio()
  const echo = new EchoDetector(reference)
  let [nowMs, sent, hopMs] = [0, 0, 0]
  const doubt = {
    hear: (energies: Float32Array) => {
      hopMs += 10
      echo.hear(energies, hopMs)
    },
    get isEcho() {
      return echo.isEcho
    },
  }
  const rules = { ...defaultRules, silenceMs }
  const detector = new VoiceActivityDetector(speechWeights, rules, played === undefined ? undefined : doubt)
  const out = played === undefined ? undefined : s16(played)
  const starts: Array<{ readonly atMs: number; readonly fromMs: number }> = []
  let [foundMs, stoppedAtMs]: Array<number | undefined> = [undefined, undefined]
  for (let at = 0; at + frame <= samples.length; at += frame) {
    nowMs = (at + frame) / perMs
    while (out !== undefined && sent < out.length && startsMs + sent / perMs < nowMs + aheadMs) {
      reference.sent(out.subarray(sent, sent + rateHz / 10), startsMs + sent / perMs, nowMs)
      sent += rateHz / 10
    }
    for (const { audioMs, type } of detector.push(samples.subarray(at, at + frame))) {
      if (type === "started") {
        foundMs ??= nowMs
        starts.push({ atMs: nowMs, fromMs: audioMs })
      } else stoppedAtMs = nowMs
    }
  }
  return { foundMs, stoppedAtMs, starts }
}

const at = (values: ReadonlyArray<number>, share: number): number =>
  values.toSorted((a, b) => a - b)[Math.min(values.length - 1, Math.floor(values.length * share))] ??
  Number.NaN

const sounds = (count: number): Section => {
  const found = Array.from({ length: count }, (_, i) => intrusion(firstSeed + i)).filter(
    ({ samples }) => hear(samples, 500).foundMs !== undefined,
  )
  const kinds = [...new Set(found.map(({ kind }) => kind))].join(", ")
  return {
    title: "Sounds that are not speech",
    method: `${count} clips of 5 s, peak -30 to -3 dBFS: keys, claps, doors, strings, birds, sirens, organ, rain, vacuum cleaner, telephone, traffic, noise. Taken for speech: ${kinds || "none"}.`,
    findings: [
      finding("taken for speech", `of ${count}`, [found.length], { is: "at most", value: count / 100 }),
    ],
  }
}

const speech = (all: ReadonlyArray<Float32Array>, count: number): Section => {
  const silenceMs = 300
  const findings = ([undefined, 20, 10] as const).flatMap((decibels) => {
    const clips = Array.from({ length: count }, (_, i) =>
      spoken(all[i % all.length]!, decibels, firstSeed + i),
    )
    const heard = clips.map((clip) => ({ clip, ...hear(clip.samples, silenceMs) }))
    const onsets = heard.flatMap(({ clip, foundMs }) =>
      foundMs === undefined ? [] : [foundMs - clip.from / perMs],
    )
    const ends = heard.flatMap(({ clip, stoppedAtMs }) =>
      stoppedAtMs === undefined ? [] : [stoppedAtMs - clip.to / perMs - silenceMs],
    )
    const name = decibels === undefined ? "clean" : `noise at ${decibels} dB`
    const bound = (value: number) => (decibels === 10 ? undefined : ({ is: "at most", value } as const))
    return [
      finding(`${name}: missed`, `of ${count}`, [count - onsets.length], {
        is: "at most",
        value: count / 100,
      }),
      finding(`${name}: first sample to detection, p50`, "ms", [at(onsets, 0.5)], bound(100)),
      finding(`${name}: first sample to detection, p95`, "ms", [at(onsets, 0.95)], bound(160)),
      finding(
        `${name}: last sample to the turn's end, more than the silence, p50`,
        "ms",
        [at(ends, 0.5)],
        decibels === undefined ? bound(20) : undefined,
      ),
      finding(
        `${name}: the same, p95`,
        "ms",
        [at(ends, 0.95)],
        decibels === undefined ? bound(60) : undefined,
      ),
    ]
  })
  return {
    title: "Speech",
    method: `${count} sentences of voices that were not trained, peak -25 to -1 dBFS, in events of 20 ms; white noise from before to behind. Silence of ${silenceMs} ms. A sample counts from 30 dB below the peak of its sentence.`,
    findings,
  }
}

const echoes = (all: ReadonlyArray<Float32Array>, count: number): Section => {
  const findings = [-10, -20, -30].flatMap((decibels) => {
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
      finding(
        `${decibels} dB: answers interrupted by their echo`,
        `of ${count}`,
        [interrupted],
        goal(count / 20),
      ),
      finding(
        `${decibels} dB: users not heard over it within 600 ms`,
        `of ${count}`,
        [missed],
        goal(count / 100),
      ),
      finding(`${decibels} dB: user's first sample to detection, p50`, "ms", [at(late, 0.5)]),
      finding(`${decibels} dB: the same, p95`, "ms", [at(late, 0.95)]),
    ]
  })
  return {
    title: "The answer's echo",
    method: `${count} answers of 4 s, each the first of its conversation, with a delay of 0 to 500 ms, a room of 50 to 250 ms, a loudspeaker that distorts, and -80 dBFS of noise. Users have a peak of -16 to -4 dBFS and begin 0.8 to 2.5 s after the answer. Before its first echo nothing is known of the delay.`,
    findings,
  }
}

/** Users with headphones: nothing of the answer comes back, and each speaks three times while answers are played. */
const headphones = (all: ReadonlyArray<Float32Array>, count: number): Section => {
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
    findings: [
      finding("users not heard within 600 ms", `of ${3 * count}`, [missed], {
        is: "at most",
        value: (3 * count) / 100,
      }),
      finding("user's first sample to detection, p50", "ms", [at(late, 0.5)], { is: "at most", value: 100 }),
      finding("the same, p95", "ms", [at(late, 0.95)], { is: "at most", value: 160 }),
    ],
  }
}

const costs = (all: ReadonlyArray<Float32Array>, rounds: number): Section => {
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
    findings: [
      finding(
        "detector",
        "µs",
        micros(() => void hear(samples, 500)),
        { is: "at most", value: 50 },
      ),
      finding(
        "prosody of semantic_vad",
        "µs",
        micros(() => {
          const prosody = new Prosody()
          for (let at = 0; at + HOP_SAMPLES <= samples.length; at += HOP_SAMPLES) {
            prosody.push(samples.subarray(at, at + HOP_SAMPLES))
          }
        }),
      ),
      finding(
        "detector and echo",
        "µs",
        micros(() => void hear(samples, 500, played)),
      ),
    ],
  }
}

/** Two minutes on one core. */
export const turnsSuite = ({ quick }: { readonly quick: boolean }): Effect.Effect<ReadonlyArray<Section>> =>
  Effect.gen(function* () {
    const all = yield* Effect.orDie(sentences)
    const count = quick ? 40 : 200
    const ends = yield* semanticEnds(quick ? 5 : 1)
    return [
      sounds(count),
      speech(all, count),
      echoes(all, count),
      headphones(all, count),
      ends,
      costs(all, quick ? 3 : 7),
    ]
  })
