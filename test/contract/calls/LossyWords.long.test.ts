// What is understood of a caller whose packets are lost, late and out of order: the words of the built-in ears, beside those of a caller whose
// packets all come.
import { afterAll, beforeAll, expect, it } from "vitest"
import { Resampler } from "#audio/Resampler.ts"
import { clipSamples, clips, rateHz } from "../../support/audio/SpeechClips.ts"
import { wordErrorRate } from "../../support/audio/WordErrorRate.ts"
import { CallClient, canCall, noLibrary } from "../../support/clients/CallClient.ts"
import { onlyWhere } from "../../support/groups/Needs.ts"
import { uses } from "../../support/groups/Uses.ts"
import { builtInModel } from "../../support/nodes/BuiltInModels.ts"
import { fakeVoice } from "../../support/nodes/SpeechNode.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilLoaded } from "../../support/nodes/TestNode.ts"
import { freePort } from "../../support/servers/FreePort.ts"
import { startLossyRelay } from "../../support/servers/LossyRelay.ts"

let node: TestNode
let port = 0
beforeAll(async () => {
  uses("process", "a listening server")
  if (!canCall) return
  port = await freePort()
  node = await startNode({
    models: [builtInModel("stt-large-v3-turbo"), fakeModel, fakeVoice],
    settings: { webrtcPort: String(port) },
    rateLimit: 0,
  })
  await untilLoaded(node, "stt-large-v3-turbo", "fake", "fake-voice")
})
afterAll(() => node?.stop())

const spoken = clips.slice(0, 16)
/** Said first and not counted: after some seconds the caller knows of losses. */
const warming = [...clips.slice(16, 18)]
/** Behind each clip, milliseconds: later than any packet of it comes. */
const pauseMs = 400

/** Transcripts of the clips. `loss` undefined: no network between. */
const heardWith = async (loss: number | undefined): Promise<ReadonlyArray<string>> => {
  const relay = loss === undefined ? undefined : await startLossyRelay(port, loss, 30)
  const caller = await CallClient.make()
  const answer = await (await caller.call(node)).text()
  const sdp = relay === undefined ? answer : answer.replace(` ${port} typ host`, ` ${relay.port} typ host`)
  caller.send({ t: "answer", sdp })
  await caller.nth("session.created")
  const input = { transcription: {}, turn_detection: null }
  caller.event({ type: "session.update", session: { type: "realtime", audio: { input } } })
  await caller.nth("session.updated")
  const transcripts: Array<string> = []
  for (const [nth, clip] of [...warming, ...spoken].entries()) {
    const samples = new Resampler(rateHz, 24_000).push(clipSamples(clip))
    caller.send({ t: "say", samples })
    await new Promise((resolve) => setTimeout(resolve, samples.length / 24 + pauseMs))
    caller.event({ type: "input_audio_buffer.commit" })
    const done = await caller.nth("conversation.item.input_audio_transcription.completed", nth + 1)
    transcripts.push(String(done.transcript))
  }
  caller.close()
  relay?.stop()
  return transcripts.slice(warming.length)
}

it(
  "most words are those of a caller whose packets all come",
  { ...onlyWhere(canCall, noLibrary), timeout: 900_000 },
  async () => {
    const quiet = await heardWith(undefined)
    const errors = (heard: ReadonlyArray<string>, reference: ReadonlyArray<string>): number =>
      wordErrorRate(heard.map((text, at) => ({ reference: reference[at]!, heard: text })))
    const texts = spoken.map(({ text }) => text)
    const differing: Record<string, number> = {}
    const cases = { "all packets again": undefined, "0 %": 0, "5 %": 0.05, "10 %": 0.1 }
    console.log(`wrong words, all packets: ${(100 * errors(quiet, texts)).toFixed(1)} %`)
    for (const [name, loss] of Object.entries(cases)) {
      const heard = await heardWith(loss)
      differing[name] = errors(heard, quiet)
      console.log(
        `${name}: ${(100 * differing[name]).toFixed(1)} % differ, ${(100 * errors(heard, texts)).toFixed(1)} % wrong`,
      )
    }
    expect(differing["5 %"]).toBeLessThan(differing["all packets again"]! + 0.15)
    expect(differing["10 %"]).toBeLessThan(differing["all packets again"]! + 0.2)
  },
)
