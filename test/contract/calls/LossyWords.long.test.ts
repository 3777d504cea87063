// What is understood of a caller whose packets are lost, late and out of order: the words of the built-in ears, beside those of a caller whose
// packets all come. The network is on paper, with a clock of its own, so that a busy machine changes nothing.
import { afterAll, afterEach, beforeAll, expect, it, vi } from "vitest"
import { Resampler } from "#audio/Resampler.ts"
import { CallAudio } from "#calls/peer/CallAudio.ts"
import { wavBytes } from "../../support/audio/AudioFiles.ts"
import { clipSamples, clips, rateHz } from "../../support/audio/SpeechClips.ts"
import { wordErrorRate } from "../../support/audio/WordErrorRate.ts"
import { model, post, whisper } from "../../support/clients/TranscriptionClient.ts"
import { uses } from "../../support/groups/Uses.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  uses("process", "a listening server")
  node = await startNode({ models: [whisper], rateLimit: 0 })
  await untilLoaded(node, whisper.id)
})
afterAll(() => node?.stop())
afterEach(() => void vi.useRealTimers())

const callHz = 24_000
const packetMs = 20
const packetSamples = (callHz * packetMs) / 1_000
const jitterMs = 30
/** Between clips. */
const pauseSamples = 0.4 * callHz

/** Clips one after the other, and where each lies. The first two are said again: after some seconds the caller knows of losses. */
const script = () => {
  const parts = [...clips.slice(0, 2), ...clips].map((clip) =>
    new Resampler(rateHz, callHz).push(clipSamples(clip)),
  )
  const length = parts.reduce((sum, part) => sum + part.length + pauseSamples, 0)
  const samples = new Int16Array(Math.ceil(length / packetSamples + 10) * packetSamples)
  let at = 0
  const places = parts.map((part) => {
    const from = at
    samples.set(part, from)
    at = from + part.length + pauseSamples
    return { from, to: at }
  })
  return { samples, places: places.slice(2) }
}

/** Numbers from 0 to 1, the same for the same seed. */
const randomOf = (seed: number) => {
  let state = seed * 7_919 + 1
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

const sideOf = async () => {
  const heard: Array<Int16Array> = []
  const audio = await CallAudio.make({
    payloadType: 111,
    ssrc: undefined,
    heard: (samples) => void heard.push(samples),
  })
  return { audio, heard }
}

/** The clips as a node hears them. `loss` undefined: all packets come at once. */
const heardClips = async (loss: number | undefined, seed: number): Promise<ReadonlyArray<Int16Array>> => {
  const { places, samples } = script()
  vi.useFakeTimers()
  const random = randomOf(seed)
  const caller = await sideOf()
  const other = await sideOf()
  const pass = (packets: ReadonlyArray<Uint8Array>, to: CallAudio): void => {
    for (const packet of packets) {
      if (loss === undefined) to.take(packet)
      else if (random() >= loss) setTimeout(() => to.take(packet), random() * jitterMs)
    }
  }
  for (let at = 0; at < samples.length; at += packetSamples) {
    caller.audio.outgoing.push(samples.subarray(at, at + packetSamples))
    pass(caller.audio.due(), other.audio)
    pass(other.audio.due(), caller.audio)
    vi.advanceTimersByTime(packetMs)
  }
  vi.advanceTimersByTime(100)
  caller.audio.close()
  other.audio.close()
  vi.useRealTimers()
  const all = Int16Array.from(other.heard.flatMap((part) => [...part]))
  return places.map(({ from, to }) => all.slice(from, to))
}

const transcriptOf = async (samples: Int16Array): Promise<string> => {
  const wav = wavBytes(new Resampler(callHz, rateHz).push(samples), rateHz, "16")
  const reply = await post(node, new Uint8Array(wav), { query: { model, sync: "true" } })
  return ((await reply.json()) as { readonly text: string }).text
}

const transcriptsOf = async (loss: number | undefined, seed: number): Promise<ReadonlyArray<string>> => {
  const transcripts: Array<string> = []
  for (const samples of await heardClips(loss, seed)) transcripts.push(await transcriptOf(samples))
  return transcripts
}

it("most words are those of a caller whose packets all come", async () => {
  const texts = clips.map(({ text }) => text)
  const quiet = await transcriptsOf(undefined, 0)
  const pairs = (heard: ReadonlyArray<string>, reference: ReadonlyArray<string>) =>
    heard.map((text, at) => ({ reference: reference[at]!, heard: text }))
  const percent = (share: number) => `${(100 * share).toFixed(1)} %`
  const quietWrong = wordErrorRate(pairs(quiet, texts))
  console.log(`all packets: ${percent(quietWrong)} of the words are wrong`)
  const differing: Record<number, number> = {}
  for (const loss of [0, 0.05, 0.1]) {
    const runs: Array<ReadonlyArray<string>> = []
    for (const seed of [1, 2, 3]) runs.push(await transcriptsOf(loss, seed))
    differing[loss] = wordErrorRate(runs.flatMap((run) => pairs(run, quiet)))
    const wrong = wordErrorRate(runs.flatMap((run) => pairs(run, texts)))
    console.log(
      `${percent(loss)} lost, up to ${jitterMs} ms late: ${percent(differing[loss])} differ, ${percent(wrong)} wrong`,
    )
    expect(wrong).toBeLessThan(quietWrong + 0.05)
  }
  expect(differing[0]).toBeLessThan(0.05)
  expect(differing[0.05]).toBeLessThan(0.15)
  expect(differing[0.1]).toBeLessThan(0.2)
})
