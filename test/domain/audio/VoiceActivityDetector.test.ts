// Detected speech: the evaluation clips between silences, for any frame sizes; no speech in hiss, hum and clicks.
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { speechWeights } from "#audio/SpeechWeights.ts"
import { bytesToS16 } from "#domain/audio/Audio.ts"
import { type SpeechEvent, VoiceActivityDetector } from "#domain/audio/VoiceActivityDetector.ts"
import { clips } from "../../support/clients/LiveClient.ts"
import { runs } from "../../support/groups/Runs.ts"

const rateHz = 16_000
const noise = (seconds: number, amplitude: number): Int16Array => {
  let state = 99
  return new Int16Array(seconds * rateHz).map(() => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return Math.round((state / 2 ** 31 - 1) * amplitude * 32_767)
  })
}
const joined = (...parts: ReadonlyArray<Int16Array>): Int16Array => {
  const all = new Int16Array(parts.reduce((sum, part) => sum + part.length, 0))
  let at = 0
  for (const part of parts) {
    all.set(part, at)
    at += part.length
  }
  return all
}
const heard = (samples: Int16Array, sizes: ReadonlyArray<number> = [samples.length]) => {
  const detector = new VoiceActivityDetector(speechWeights)
  const events: Array<SpeechEvent> = []
  for (let at = 0, i = 0; at < samples.length; i++) {
    const size = sizes[i % sizes.length]!
    events.push(...detector.push(samples.subarray(at, at + size)))
    at += size
  }
  return events
}

describe("speech", () => {
  it.each([0, 30, 10, 20].slice(0, runs(2, 4)))(
    "goes on while it lasts, where a silence of %s ms ends it",
    (silenceMs) => {
      const detector = new VoiceActivityDetector(speechWeights, { silenceMs, threshold: 0.5 })
      let stops = 0
      for (const clip of clips) {
        const samples = bytesToS16(clip)
        for (let at = 0; at + 160 <= samples.length; at += 160) {
          const wasSpeech = detector.probability > 0.5
          const [event] = detector.push(samples.subarray(at, at + 160))
          if (event?.type !== "stopped") continue
          stops++
          // Two hops were speech: the newest, and the one before it.
          expect(wasSpeech && detector.probability > 0.5).toBe(false)
        }
      }
      expect(stops).toBeGreaterThan(0)
    },
  )

  it.each([0.001, 0, 0.005].slice(0, runs(1, 3)))(
    "starts and stops with a clip, in a background of %s",
    (background) => {
      for (const clip of clips) {
        const speech = bytesToS16(clip)
        const samples = joined(noise(2, background), speech, noise(2, background))
        const events = heard(samples)
        expect(events.length).toBeGreaterThanOrEqual(2)
        expect(events.map(({ type }) => type)).toEqual(
          events.map((_, i) => (i % 2 === 0 ? "started" : "stopped")),
        )
        const endMs = 2_000 + (speech.length * 1000) / rateHz
        expect(events[0]!.audioMs).toBeGreaterThanOrEqual(2_000)
        expect(events[0]!.audioMs).toBeLessThan(2_700)
        expect(events.at(-1)!.type).toBe("stopped")
        expect(events.at(-1)!.audioMs).toBeLessThanOrEqual(endMs + 100)
        expect(events.at(-1)!.audioMs).toBeGreaterThan(endMs - 1_200)
      }
    },
  )

  it("is not silence, hiss, hum, or a click", () => {
    const hum = new Int16Array(5 * rateHz).map((_, i) => 2_000 * Math.sin((2 * Math.PI * 50 * i) / rateHz))
    const click = joined(noise(1, 0.001), noise(0.02, 0.5), noise(1, 0.001))
    for (const samples of [new Int16Array(5 * rateHz), noise(5, 0.002), noise(5, 0.05), hum, click]) {
      expect(heard(samples)).toEqual([])
    }
  })

  it("is the same in frames of any size", () => {
    const samples = joined(noise(1, 0.001), bytesToS16(clips[0]!), noise(1, 0.001), bytesToS16(clips[1]!))
    const whole = heard(samples)
    expect(whole.length).toBeGreaterThan(2)
    fc.assert(
      fc.property(fc.array(fc.integer({ min: 1, max: 5_000 }), { minLength: 1, maxLength: 5 }), (sizes) => {
        expect(heard(samples, sizes)).toEqual(whole)
      }),
      { numRuns: 20 },
    )
  })
})

it("speech that was taken for an echo at first begins where it began", () => {
  const clip = joined(new Int16Array(rateHz / 2), bytesToS16(clips[0]!))
  const [plain] = heard(clip)
  for (const doubtedMs of [50, 200, 400]) {
    let hops = 0
    const doubt = {
      hear: () => void hops++,
      get isEcho() {
        return hops * 10 < plain!.audioMs + 80 + doubtedMs
      },
    }
    const [later] = new VoiceActivityDetector(speechWeights, undefined, doubt).push(clip)
    expect(later).toEqual(plain)
  }
})
