// The audio of a call from one side to the other, with packets lost on the way: it lasts as long as it was, and what was lost is taken from the
// redundancy in the next packet, once the sender knows of losses.
import { afterEach, beforeEach, expect, it, vi } from "vitest"
import { Resampler } from "#audio/Resampler.ts"
import { CallAudio } from "#calls/peer/CallAudio.ts"
import { isRtcp, parseRtp } from "#domain/calls/Rtp.ts"
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
    for (const packet of caller.audio.due()) if (isRtcp(packet) || !isLost(nth)) node.audio.take(packet)
    for (const packet of node.audio.due()) if (tells || !isRtcp(packet)) caller.audio.take(packet)
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

it("begins to speak at once, and lasts as long as its timestamps say", async () => {
  const { audio } = await sideOf()
  const sent: Array<{ readonly tick: number; readonly sequence: number; readonly timestamp: number }> = []
  const send = (tick: number, packets: ReadonlyArray<Uint8Array>) => {
    for (const packet of packets) {
      if (isRtcp(packet)) continue
      const { sequence, timestamp } = parseRtp(packet)!
      sent.push({ tick, sequence, timestamp })
    }
  }
  const packets = 4
  for (let tick = 0; tick < 30; tick++) {
    if (tick === 5 || tick === 15) {
      // Pieces of half a packet: the first says nothing yet.
      for (let half = 0; half < 2 * packets; half++) {
        audio.outgoing.push(spoken.subarray((half * frame) / 2, ((half + 1) * frame) / 2))
        send(tick - 0.5, audio.early())
      }
    }
    send(tick, audio.due())
  }
  audio.close()
  expect(sent).toHaveLength(30)
  for (const [at, { sequence, timestamp }] of sent.entries()) {
    expect((sequence - sent[0]!.sequence) & 0xffff).toBe(at)
    expect((timestamp - sent[0]!.timestamp) >>> 0).toBe(960 * at)
  }
  // One of speech leaves before its tick, and no packet in the tick behind the speech.
  const ticks = Array.from({ length: 30 }, (_, at) => at)
  const moved = ticks.map((at) => {
    const isSpeech = (begin: number) => at >= begin && at < begin + packets
    if (at === 5 || at === 15) return at - 0.5
    return isSpeech(5) || isSpeech(15) ? at - 1 : at
  })
  expect(sent.map(({ tick }) => tick)).toEqual(moved)
})
