// The audio of a call from one side to the other, with packets lost on the way: it lasts as long as it was, and what was lost is taken from the
// redundancy in the next packet, once the sender knows of losses.
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { Resampler } from "#audio/Resampler.ts"
import { CallAudio } from "#calls/peer/CallAudio.ts"
import { isRtcp } from "#domain/calls/Rtp.ts"
import { longSamples, rateHz } from "../../support/audio/SpeechClips.ts"

const payloadType = 111
const packetMs = 20
const frame = 480

beforeEach(() => void vi.useFakeTimers())
afterEach(() => void vi.useRealTimers())

const sideOf = async () => {
  const heard: Array<number> = []
  const audio = await CallAudio.make({
    payloadType,
    ssrc: undefined,
    heard: (samples) => void heard.push(...samples),
  })
  return { audio, heard }
}

/** Decoded speech after a lossy network. `tells`: reports reach the sender. */
const heardOf = async (
  spoken: Int16Array,
  isLost: (nth: number) => boolean,
  tells: boolean,
): Promise<Int16Array> => {
  const caller = await sideOf()
  const node = await sideOf()
  caller.audio.outgoing.push(spoken)
  for (let nth = 0; nth * frame < spoken.length; nth++) {
    vi.advanceTimersByTime(packetMs)
    for (const packet of caller.audio.next()) if (isRtcp(packet) || !isLost(nth)) node.audio.take(packet)
    for (const packet of node.audio.next()) if (tells || !isRtcp(packet)) caller.audio.take(packet)
  }
  vi.advanceTimersByTime(100)
  caller.audio.close()
  node.audio.close()
  return Int16Array.from(node.heard)
}

const spoken = new Resampler(rateHz, 24_000).push(longSamples(6))
/** One of ten, no two in a row; the beginning and the end come. */
const isLost = (nth: number): boolean => nth > 5 && nth % 10 === 7 && (nth + 20) * frame < spoken.length

/** Of the frames that were lost: the energy of what differs, as a share of that of all. */
const wrongIn = (heard: Int16Array, whole: Int16Array): number => {
  let wrong = 0
  let all = 0
  // The first seconds pass until reports have come.
  for (let nth = 150; (nth + 1) * frame <= whole.length; nth++) {
    if (!isLost(nth)) continue
    for (let at = nth * frame; at < (nth + 1) * frame; at++) {
      wrong += (heard[at]! - whole[at]!) ** 2
      all += whole[at]! ** 2
    }
  }
  return wrong / all
}

it("lasts as long as it was, and a lost packet is heard from the next one's redundancy", async () => {
  const whole = await heardOf(spoken, () => false, true)
  const told = await heardOf(spoken, isLost, true)
  const untold = await heardOf(spoken, isLost, false)
  expect(told.length).toBe(whole.length)
  expect(untold.length).toBe(whole.length)
  expect(wrongIn(told, whole)).toBeLessThan(wrongIn(untold, whole) / 2)
})

it("goes on from what was before, quieter and quieter, where several packets are lost in a row", async () => {
  const whole = await heardOf(spoken, () => false, true)
  const energyIn = (samples: Int16Array, nth: number) =>
    samples.subarray(nth * frame, (nth + 1) * frame).reduce((sum, sample) => sum + sample ** 2, 0)
  const numbers = Array.from({ length: 100 }, (_, at) => at + 150)
  const loudest = numbers.reduce((a, b) => (energyIn(whole, b) > energyIn(whole, a) ? b : a))
  const heard = await heardOf(spoken, (nth) => nth > loudest && nth <= loudest + 8, true)
  expect(heard.length).toBe(whole.length)
  expect(energyIn(heard, loudest + 1)).toBeGreaterThan(energyIn(whole, loudest) / 20)
  expect(energyIn(heard, loudest + 1)).toBeGreaterThan(2 * energyIn(heard, loudest + 7))
})
