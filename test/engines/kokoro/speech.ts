// Runs a speech engine in a test: loads it, speaks, and collects the output.
import { Effect } from "effect"
import type {
  EngineDescriptor,
  EngineSpec,
  SpeechEngine,
  SynthesizeRequest,
} from "#engines/protocol/Engine.ts"
import { CollectingOutlet, engineSpec } from "../../support/engines/EngineHarness.ts"

export const openSpeech = Effect.fnUntraced(function* (
  descriptor: EngineDescriptor,
  files: EngineSpec["files"],
  options: EngineSpec["options"] = {},
) {
  const engine = yield* descriptor.acquire(engineSpec(descriptor.adapter, files, options))
  if (engine.kind !== "speech")
    return yield* Effect.die(new Error(`${descriptor.adapter} is no speech engine`))
  return engine
})

export type SpeechOutlet = CollectingOutlet<"speech">
export const speechOutlet = (): SpeechOutlet => new CollectingOutlet<"speech">()

export const samplesOf = (outlet: SpeechOutlet): Int16Array => {
  const all = new Int16Array(outlet.units.reduce((sum, unit) => sum + unit.samples.length, 0))
  let at = 0
  for (const { samples } of outlet.units) {
    all.set(samples, at)
    at += samples.length
  }
  return all
}

export const speechRequest = (text: string, more: Partial<SynthesizeRequest> = {}): SynthesizeRequest => ({
  text,
  voice: { preset: "af_bella" },
  language: "en",
  speed: 1,
  ...more,
})

/** Speaks to the end; all samples as one array. */
export const say = Effect.fnUntraced(function* (engine: SpeechEngine, request: SynthesizeRequest) {
  const outlet = speechOutlet()
  const end = yield* engine.synthesize(request, outlet)
  return { samples: samplesOf(outlet), outlet, end }
})

/** Files of the demonstration voices in the repository. */
export const demoFiles = (() => {
  const file = (name: string): string =>
    new URL(`../../../models/kokoro-demo/${name}`, import.meta.url).pathname
  return {
    model: file("model.onnx"),
    tokenizer: file("tokenizer.json"),
    voices: file("voices"),
    styleEncoder: file("style_encoder.onnx"),
    defaultVoice: file("voices/af_sarah.bin"),
  }
})()

/** Files of the built-in cloning model. */
export const cloneFiles = {
  ...demoFiles,
  model: new URL("../../../models/kokoro-demo/model-languages.onnx", import.meta.url).pathname,
}
