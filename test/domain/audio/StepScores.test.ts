// Turns by probabilities that a detection model gives: the same turns however late they come and however the audio is cut, and the built-in
// network takes over in the middle of a turn.
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { speechWeights } from "#audio/SpeechWeights.ts"
import { hopSamples } from "#domain/activity/BandEnergies.ts"
import { SpeechNetwork } from "#domain/activity/SpeechNetwork.ts"
import { bytesToS16, s16ToBytes } from "#domain/audio/Audio.ts"
import { StepScores } from "#domain/audio/StepScores.ts"
import { TurnDetector, type TurnStep } from "#domain/audio/TurnDetector.ts"
import { voice } from "../../support/audio/Voice.ts"

const step = 512
const rules = { silenceMs: 300, prefixMs: 200, threshold: 0.5 }

describe("StepScores", () => {
  it("a hop has the score of the step in which its middle lies", () => {
    const scores = new StepScores(step)
    expect(scores.knows(-1)).toBe(true)
    expect(scores.at(-1)).toBe(0)
    expect(scores.knows(0)).toBe(false)
    scores.push([0.1, 0.2])
    const known = Array.from({ length: 7 }, (_, hop) => (scores.knows(hop) ? scores.at(hop) : undefined))
    expect(known).toEqual([0.1, 0.1, 0.1, 0.2, 0.2, 0.2, undefined])
    scores.end()
    expect(scores.knows(6)).toBe(true)
    expect(scores.at(6)).toBeUndefined()
  })
})

/** Samples whose sign says whether a model would take their step for speech: speech where most are positive. */
const modelScores = (steps: Int16Array): ReadonlyArray<number> =>
  Array.from({ length: steps.length / step }, (_, i) =>
    steps.subarray(i * step, (i + 1) * step).reduce((sum, x) => sum + Math.sign(x), 0) > 0 ? 0.9 : 0.1,
  )

/** As ModelHearing does: silence before the audio, whole steps to the model, and their scores some steps later. */
const turnsOf = (samples: Int16Array, sizes: ReadonlyArray<number>, lateSteps: number) => {
  const scores = new StepScores(step)
  const detector = new TurnDetector(speechWeights, rules, 0, undefined, scores)
  const all = new Int16Array(detector.aheadSamples + samples.length)
  all.set(samples, detector.aheadSamples)
  let judged = 0
  const steps: Array<TurnStep> = []
  for (let at = 0, i = 0; at < samples.length; i++) {
    const piece = samples.subarray(at, at + sizes[i % sizes.length]!)
    at += piece.length
    const whole = Math.floor((detector.aheadSamples + at) / step)
    const known = at >= samples.length ? whole : whole - lateSteps
    if (known > judged) {
      scores.push(modelScores(all.subarray(judged * step, known * step)))
      judged = known
    }
    steps.push(...detector.push(piece))
  }
  return steps
}

const joined = (steps: ReadonlyArray<TurnStep>) => {
  const turns: Array<{ from: number; samples: Buffer; to: number | undefined }> = []
  for (const one of steps) {
    const turn = turns.at(-1)
    if (one.step === "started")
      turns.push({ from: one.audioMs, samples: Buffer.from(s16ToBytes(one.samples)), to: undefined })
    else if (one.step === "samples") turn!.samples = Buffer.concat([turn!.samples, s16ToBytes(one.samples)])
    else turn!.to = one.audioMs
  }
  return turns
}

const bytesAt = (samples: Int16Array, { from, samples: { length } }: { from: number; samples: Buffer }) =>
  Buffer.from(s16ToBytes(samples.subarray(from * 16, from * 16 + length / 2)))

const pattern = fc.array(fc.integer({ min: 2, max: 40 }), { minLength: 2, maxLength: 6 })
const audioOf = (lengths: ReadonlyArray<number>): Int16Array =>
  Int16Array.from(lengths.flatMap((hops, i) => new Array(hops * hopSamples).fill(i % 2 === 0 ? -3 : 5)))

describe("turns by a model's scores", () => {
  it("are the same for any pieces and however late the scores come", () => {
    fc.assert(
      fc.property(
        pattern,
        fc.array(fc.integer({ min: 1, max: 2_000 }), { minLength: 1, maxLength: 5 }),
        fc.integer({ min: 0, max: 9 }),
        (lengths, sizes, late) => {
          const samples = audioOf(lengths)
          expect(joined(turnsOf(samples, sizes, late))).toEqual(joined(turnsOf(samples, [160], 0)))
        },
      ),
      { numRuns: 40 },
    )
  })

  it("begin with the steps that the model takes for speech and end with the silence behind them", () => {
    const samples = audioOf([100, 60, 60])
    const [turn, ...others] = joined(turnsOf(samples, [320], 1))
    expect(others).toEqual([])
    // 1 s without speech, 0.6 s with it; a step is 32 ms, and 200 ms before the speech belong to the turn.
    expect(Math.abs(turn!.from - 800)).toBeLessThan(50)
    expect(Math.abs(turn!.to! - 1_900)).toBeLessThan(60)
    expect(turn!.samples.equals(bytesAt(samples, turn!))).toBe(true)
    expect(turn!.samples.length / 32).toBe(turn!.to! - turn!.from)
  })

  it("need no call of the network, which takes over once the scores end", () => {
    const spoken = bytesToS16(voice(2, 1, 16_000))
    const samples = Int16Array.from([...new Int16Array(8_000), ...spoken, ...new Int16Array(16_000)])
    const scores = new StepScores(step)
    const detector = new TurnDetector(speechWeights, rules, 0, undefined, scores)
    let calls = 0
    const { step: original } = SpeechNetwork.prototype
    SpeechNetwork.prototype.step = function (energies) {
      calls++
      return original.call(this, energies)
    }
    try {
      const steps: Array<TurnStep> = []
      const half = 16_000
      scores.push(new Array(Math.floor((half + detector.aheadSamples) / step)).fill(0.9))
      steps.push(...detector.push(samples.subarray(0, half)))
      expect(calls).toBe(0)
      expect(joined(steps)[0]?.to).toBeUndefined()
      scores.end()
      steps.push(...detector.push(samples.subarray(half)))
      expect(calls).toBeGreaterThan(100)
      const [turn] = joined(steps)
      // What waited for scores is in the turn.
      expect(turn!.samples.equals(bytesAt(samples, turn!))).toBe(true)
      const [own] = joined(new TurnDetector(speechWeights, rules).push(samples))
      expect(Math.abs(turn!.to! - own!.to!)).toBeLessThan(100)
    } finally {
      SpeechNetwork.prototype.step = original
    }
  })
})
