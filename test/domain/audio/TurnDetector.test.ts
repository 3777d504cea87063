// Audio into speakers' turns: a turn holds an unchanged stretch of the audio, with a little before it; the same turns
// for audio in pieces of any size.
import * as fc from "fast-check"
import { expect, it, vi } from "vitest"
import { Resampler } from "#audio/Resampler.ts"
import { speechWeights } from "#audio/SpeechWeights.ts"
import { hopSamples } from "#domain/activity/BandEnergies.ts"
import { bytesToS16 } from "#domain/audio/Audio.ts"
import { TurnDetector, type TurnStep } from "#domain/audio/TurnDetector.ts"
import { onsetLagHops, VoiceActivityDetector } from "#domain/audio/VoiceActivityDetector.ts"
import { voice } from "../../support/audio/Voice.ts"
import { inLong } from "../../support/groups/Runs.ts"

const rateHz = 16_000
const spoken = bytesToS16(voice(10, 1, 16_000))
const silenceMs = 300
const prefixMs = 200

/** Speech and silence alternately, in tenths of a second. */
const stretches = fc.array(fc.integer({ min: 1, max: 12 }), { minLength: 1, maxLength: 8 })
const audioOf = (tenths: ReadonlyArray<number>): Int16Array => {
  const total = tenths.reduce((sum, tenth) => sum + tenth, 0)
  const samples = new Int16Array((total * rateHz) / 10)
  let at = 0
  tenths.forEach((tenth, i) => {
    const length = (tenth * rateHz) / 10
    if (i % 2 === 0) samples.set(spoken.subarray(0, length), at)
    at += length
  })
  return samples
}

interface Turn {
  readonly startMs: number
  readonly samples: Array<number>
  endMs: number | undefined
}

const turnsOf = (
  samples: Int16Array,
  sizes: ReadonlyArray<number>,
  padding = prefixMs,
): ReadonlyArray<Turn> => {
  const finder = new TurnDetector(speechWeights, { silenceMs, prefixMs: padding, threshold: 0.5 })
  const turns: Array<Turn> = []
  const take = (step: TurnStep) => {
    if (step.step === "started") {
      turns.push({ startMs: step.audioMs, samples: [...step.samples], endMs: undefined })
    } else if (step.step === "samples") turns.at(-1)!.samples.push(...step.samples)
    else {
      expect(step.quietMs).toBe(silenceMs)
      turns.at(-1)!.endMs = step.audioMs
    }
  }
  for (let at = 0, i = 0; at < samples.length; i++) {
    const size = sizes[i % sizes.length]!
    for (const step of finder.push(samples.subarray(at, at + size))) take(step)
    at += size
  }
  return turns
}

it("a turn is a stretch of the audio, from a little before its start to the silence behind its end", () => {
  let seen = 0
  fc.assert(
    fc.property(
      stretches,
      fc.array(fc.integer({ min: 1, max: 4_000 }), { minLength: 1, maxLength: 4 }),
      (tenths, sizes) => {
        const samples = audioOf(tenths)
        const turns = turnsOf(samples, [samples.length])
        expect(JSON.stringify(turnsOf(samples, sizes))).toBe(JSON.stringify(turns))
        let before = 0
        for (const { endMs, samples: heard, startMs } of turns) {
          seen++
          const at = startMs * 16
          // The audio held before a turn never overlaps the turn before it.
          expect(at).toBeGreaterThanOrEqual(before)
          expect(heard.every((sample, i) => sample === samples[at + i])).toBe(true)
          before = at + heard.length
          if (endMs === undefined) continue
          expect(endMs).toBeGreaterThan(startMs)
          expect(before).toBe(endMs * 16)
        }
      },
    ),
    { numRuns: 60 },
  )
  expect(seen).toBeGreaterThan(40)
})

it("positions count from the beginning of the audio, also for a detector that begins later", () => {
  const samples = audioOf([0, 5, 9, 6])
  const startsAt = 48_000
  const rules = { silenceMs, prefixMs, threshold: 0.5 }
  const [first, later] = [0, startsAt].map((from) =>
    new TurnDetector(speechWeights, rules, from)
      .push(samples)
      .flatMap((step) => ("audioMs" in step ? [step.audioMs] : [])),
  )
  expect(first!.length).toBeGreaterThan(1)
  expect(later).toEqual(first!.map((ms) => ms + startsAt / 16))
})

it.each([24_000, 8_000] as const)(
  "audio of %i Hz in pieces of 20 ms is looked at with the piece that brings it",
  (rateHz) => {
    const finder = new TurnDetector(speechWeights, { silenceMs, prefixMs, threshold: 0.5 })
    const resampler = new Resampler(rateHz, 16_000)
    const speech =
      rateHz === 24_000
        ? bytesToS16(voice(2, 1, rateHz))
        : spoken.filter((_, at) => at % 2 === 0).slice(0, 16_000)
    let looked = 0
    const pieceSamples = rateHz / 50
    let end: number | undefined
    for (let piece = 1; piece <= 100; piece++) {
      const samples = speech.subarray((piece - 1) * pieceSamples, piece * pieceSamples)
      for (const step of finder.push(resampler.push(samples))) {
        if (step.step === "started") end = step.audioMs * 16 + step.samples.length
        else if (step.step === "samples") end! += step.samples.length
        else end = undefined
      }
      if (end === undefined) continue
      looked++
      expect(end).toBeGreaterThanOrEqual(piece * 320 - 64)
    }
    expect(looked).toBeGreaterThan(50)
  },
)

it("one silence can be given another length: it ends the turn sooner or later, and the next one has the usual length", () => {
  const pauses = fc.array(fc.constantFrom(100, 150, 250, 500, undefined), { minLength: 1, maxLength: 6 })
  fc.assert(
    fc.property(pauses, (lengths) => {
      const detector = new TurnDetector(speechWeights, { silenceMs, prefixMs, threshold: 0.5, judges: true })
      for (const length of lengths) {
        detector.push(spoken.subarray(0, rateHz / 2))
        expect(detector.pause?.endsAtMs).toBe(silenceMs)
        let ended: number | undefined
        for (let at = 0; at < 700 && ended === undefined; at += 10) {
          for (const turn of detector.push(new Int16Array(rateHz / 100))) {
            if (turn.step === "ended") ended = turn.quietMs
          }
          const isPause = (detector.pause?.quietMs ?? 0) > 0
          expect(detector.ending !== undefined).toBe(isPause)
          if (at < 70 || length === undefined || !isPause) continue
          detector.setSilence(length)
          expect(detector.pause?.endsAtMs).toBe(length)
        }
        expect(ended).toBe(length ?? silenceMs)
        // Without an open turn there is nothing to change.
        detector.setSilence(50)
        expect(detector.pause).toBeUndefined()
      }
    }),
    { numRuns: 20 },
  )
})

it("a silence that is over has no length any more, though the turn goes on", () => {
  const detector = new TurnDetector(speechWeights, { silenceMs, prefixMs, threshold: 0.5 })
  detector.push(spoken.subarray(0, rateHz / 2))
  detector.push(new Int16Array(rateHz / 5))
  detector.setSilence(2_000)
  expect(detector.push(new Int16Array(rateHz / 2)).some(({ step }) => step === "ended")).toBe(false)
  detector.push(spoken.subarray(0, rateHz / 2))
  expect(detector.pause?.endsAtMs).toBe(silenceMs)
  // Nothing judges it.
  detector.push(new Int16Array(rateHz / 10))
  expect(detector.pause?.quietMs).toBeGreaterThan(0)
  expect(detector.ending).toBeUndefined()
})

/** The turns of a detector that keeps the silence before a turn in one array, which it makes again for every 10 ms. */
const plainTurns = (samples: Int16Array, prefixMs: number): ReadonlyArray<Turn> => {
  const ahead = 48
  const detector = new VoiceActivityDetector(speechWeights, { silenceMs, threshold: 0.5 })
  const all = [...new Int16Array(ahead), ...samples]
  const keptSamples = prefixMs * 16 + onsetLagHops * hopSamples
  const turns: Array<Turn> = []
  let open: Turn | undefined
  let held: Array<number> = []
  for (let at = 0; at + hopSamples <= all.length; at += hopSamples) {
    const hop = all.slice(at, at + hopSamples)
    const end = at + hopSamples - ahead
    const [event] = detector.push(Int16Array.from(hop))
    if (event?.type === "started") {
      const from = Math.max(0, event.audioMs * 16 - ahead - prefixMs * 16)
      const turn = [...held, ...hop].slice(-(end - from))
      open = { startMs: (end - turn.length) / 16, samples: turn, endMs: undefined }
      turns.push(open)
      held = []
      continue
    }
    if (open === undefined) held = [...held, ...hop].slice(-keptSamples)
    else open.samples.push(...hop)
    if (event?.type !== "stopped") continue
    open!.endMs = end / 16
    open = undefined
  }
  return turns
}

it("with any padding, in pieces of any size, turns are those of a plain detector", inLong, () => {
  let seen = 0
  fc.assert(
    fc.property(
      stretches,
      fc.array(fc.integer({ min: 1, max: 20_000 }), { minLength: 1, maxLength: 4 }),
      fc.oneof(fc.constantFrom(0, 5_000), fc.nat(5_000)),
      (tenths, sizes, padding) => {
        const samples = audioOf(tenths)
        const turns = turnsOf(samples, sizes, padding)
        seen += turns.length
        expect(JSON.stringify(turns)).toBe(JSON.stringify(plainTurns(samples, padding)))
      },
    ),
    { numRuns: 30 },
  )
  expect(seen).toBeGreaterThan(20)
})

it("copies as many samples with 5 s of padding as without", () => {
  const silence = new Int16Array(10 * rateHz)
  const copied = (padding: number): number => {
    const detector = new TurnDetector(speechWeights, { silenceMs, prefixMs: padding, threshold: 0.5 })
    for (let at = 0; at < silence.length; at += 320) detector.push(silence.subarray(at, at + 320))
    let samples = 0
    const { set } = Int16Array.prototype
    const spy = vi.spyOn(Int16Array.prototype, "set").mockImplementation(function (
      this: Int16Array,
      from,
      at,
    ) {
      samples += from.length
      set.call(this, from, at)
    })
    for (let at = 0; at < rateHz; at += 320) detector.push(silence.subarray(at, at + 320))
    spy.mockRestore()
    return samples
  }
  // A sample is copied behind the rest of the piece before it, and into the ring.
  expect(copied(0)).toBeLessThan(4 * rateHz)
  expect(copied(5_000)).toBeLessThanOrEqual(copied(0) * 1.1)
})
