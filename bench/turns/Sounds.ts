// Sounds without speech for the measurement of turns: 16 kHz float samples, the same for the same seed. Other kinds, and other code,
// than those with which the detector was trained (models/train/turns/sounds.py).
import { RandomNumbers } from "../../models/eval/Conditions.ts"

export const rateHz = 16_000

type Sound = (samples: number, random: RandomNumbers) => Float32Array

/** Peak 1. */
const levelled = (samples: Float32Array): Float32Array => {
  const peak = samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 1e-6)
  return samples.map((sample) => sample / peak)
}

/** A resonance at this frequency; `width` in Hz. */
const resonated = (samples: Float32Array, hz: number, width: number): Float32Array => {
  const r = Math.exp((-Math.PI * width) / rateHz)
  const a1 = -2 * r * Math.cos((2 * Math.PI * hz) / rateHz)
  let [y1, y2] = [0, 0]
  return samples.map((sample) => {
    const y = sample - a1 * y1 - r * r * y2
    y2 = y1
    y1 = y
    return y
  })
}

const white = (samples: number, random: RandomNumbers): Float32Array =>
  Float32Array.from({ length: samples }, () => random.normal())

/** Adds parts at times that are this far apart on average, seconds. */
const scattered =
  (gap: readonly [number, number], part: (random: RandomNumbers) => Float32Array): Sound =>
  (samples, random) => {
    const all = new Float32Array(samples)
    for (let at = random.between(0, 0.3) * rateHz; at < samples; at += random.between(...gap) * rateHz) {
      const start = Math.floor(at)
      const loud = random.between(0.4, 1)
      const one = levelled(part(random))
      for (let i = 0; i < one.length && start + i < samples; i++) all[start + i]! += one[i]! * loud
    }
    return levelled(all)
  }

const fading = (samples: Float32Array, seconds: number): Float32Array =>
  samples.map((sample, i) => sample * Math.exp(-i / (seconds * rateHz)))

/** A key goes down and comes up: two bursts with the resonance of a case. */
const key = (random: RandomNumbers): Float32Array => {
  const all = new Float32Array(rateHz * 0.18)
  const up = Math.floor(random.between(0.05, 0.12) * rateHz)
  for (const [at, loud] of [[0, 1] as const, [up, random.between(0.2, 0.6)] as const]) {
    const burst = fading(white(800, random), random.between(0.001, 0.004))
    const cased = resonated(burst, random.between(1_200, 4_500), random.between(300, 1_500))
    for (let i = 0; i < cased.length && at + i < all.length; i++) all[at + i]! += cased[i]! * loud
  }
  return all
}

const clap = (random: RandomNumbers): Float32Array =>
  resonated(
    fading(white(4_000, random), random.between(0.005, 0.03)),
    random.between(700, 2_200),
    random.between(400, 1_200),
  )

const door = (random: RandomNumbers): Float32Array => {
  const knock = fading(white(9_600, random), random.between(0.004, 0.012))
  const low = resonated(knock, random.between(60, 160), random.between(20, 60))
  const panel = resonated(knock, random.between(200, 500), random.between(60, 150))
  return low.map((sample, i) => sample + panel[i]! * 2 + knock[i]! * 3)
}

/** A plucked string: a delay line that loses its treble (Karplus and Strong). */
const pluck = (random: RandomNumbers): Float32Array => {
  const period = Math.round(rateHz / (110 * 2 ** (Math.floor(random.between(0, 30)) / 12)))
  const line = white(period, random)
  const loss = random.between(0.985, 0.998)
  return Float32Array.from({ length: rateHz * 0.9 }, (_, i) => {
    const at = i % period
    const value = line[at]!
    line[at] = ((value + line[(at + 1) % period]!) / 2) * loss
    return value
  })
}

const chirp = (random: RandomNumbers): Float32Array => {
  const [from, to] = [random.between(1_800, 4_000), random.between(2_500, 6_500)]
  const length = Math.floor(random.between(0.04, 0.15) * rateHz)
  let phase = 0
  return Float32Array.from({ length }, (_, i) => {
    phase += (2 * Math.PI * (from + ((to - from) * i) / length)) / rateHz
    return Math.sin(phase) * Math.sin((Math.PI * i) / length)
  })
}

const siren: Sound = (samples, random) => {
  const [middle, swing, rate] = [random.between(600, 1_100), random.between(100, 350), random.between(0.2, 3)]
  let phase = 0
  return Float32Array.from({ length: samples }, (_, i) => {
    phase += (2 * Math.PI * (middle + swing * Math.sin((2 * Math.PI * rate * i) / rateHz))) / rateHz
    return Math.sin(phase) + 0.4 * Math.sin(2 * phase) + 0.2 * Math.sin(3 * phase)
  })
}

/** An organ: chords of steady tones that change every half second or so. */
const organ: Sound = (samples, random) => {
  const all = new Float32Array(samples)
  for (let at = 0; at < samples; ) {
    const length = Math.floor(random.between(0.3, 1.2) * rateHz)
    const root = 98 * 2 ** (Math.floor(random.between(0, 18)) / 12)
    const third = random.next() < 0.5 ? 1.26 : 1.189
    for (const ratio of [1, third, 1.498, 2]) {
      const draw = [1, random.next(), random.next() / 2, random.next() / 3, random.next() / 4]
      for (let i = 0; i < length && at + i < samples; i++) {
        const edge = Math.min(1, i / 300, (length - i) / 300)
        draw.forEach((loud, k) => {
          all[at + i]! += edge * loud * Math.sin((2 * Math.PI * root * ratio * (k + 1) * i) / rateHz)
        })
      }
    }
    at += length
  }
  return levelled(all)
}

const rain: Sound = (samples, random) => {
  const drops = Float32Array.from({ length: samples }, () => (random.next() < 0.01 ? random.normal() : 0))
  const splash = resonated(drops, random.between(2_000, 5_000), 2_500)
  const hiss = white(samples, random)
  return levelled(splash.map((sample, i) => sample + hiss[i]! * 0.08))
}

const vacuum: Sound = (samples, random) => {
  const body = resonated(white(samples, random), random.between(300, 900), 700)
  const whine = random.between(250, 700)
  return levelled(body.map((sample, i) => sample + 2 * Math.sin((2 * Math.PI * whine * i) / rateHz)))
}

const telephone: Sound = (samples, random) => {
  const [a, b] = [random.between(900, 1_500), random.between(1_500, 2_200)]
  return Float32Array.from({ length: samples }, (_, i) => {
    const on = i % (rateHz * 1.5) < rateHz * 0.8
    const hz = Math.floor(i / 640) % 2 === 0 ? a : b
    return on ? Math.sign(Math.sin((2 * Math.PI * hz * i) / rateHz)) * 0.5 : 0
  })
}

/** Noise whose loudness wanders, as of traffic behind a window. */
const traffic: Sound = (samples, random) => {
  let [low, lower, loud] = [0, 0, 0.5]
  return levelled(
    Float32Array.from({ length: samples }, () => {
      low = low * 0.97 + random.normal() * 0.03
      lower = lower * 0.995 + low * 0.005
      loud = Math.min(1, Math.max(0.2, loud + random.normal() * 0.0015))
      return (low + 3 * lower) * loud
    }),
  )
}

export const sounds: Readonly<Record<string, Sound>> = {
  keys: scattered([0.08, 0.4], key),
  claps: scattered([0.25, 0.9], clap),
  door: scattered([0.5, 2], door),
  strings: scattered([0.12, 0.5], pluck),
  birds: scattered([0.08, 0.6], chirp),
  siren,
  organ,
  rain,
  vacuum,
  telephone,
  traffic,
  white: (samples, random) => levelled(white(samples, random)),
}

/** A clip of one kind: 4 s, peak -30 to -3 dBFS, between half a second of near silence. */
export const intrusion = (seed: number): { readonly kind: string; readonly samples: Int16Array } => {
  const random = new RandomNumbers(seed * 7_919 + 13)
  const names = Object.keys(sounds)
  const kind = names[seed % names.length]!
  const sound = sounds[kind]!(4 * rateHz, random)
  const loud = 10 ** (-random.between(3, 30) / 20)
  const samples = new Int16Array(5 * rateHz).map((_, i) => {
    const inside = sound[i - rateHz / 2] ?? 0
    return Math.round(32_767 * (inside * loud + random.normal() * 1e-4))
  })
  return { kind, samples }
}
