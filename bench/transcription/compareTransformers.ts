// The transcription engine beside @huggingface/transformers on the same files: features of its extractor, greedy tokens of
// its decoder. That package is no dependency of this project; install it elsewhere and name its folder:
//
//   cd "$(mktemp -d)" && npm i --ignore-scripts @huggingface/transformers
//   node bench/transcription/compareTransformers.ts node_modules/@huggingface/transformers
//
// It reads models/whisper-demo-en only and downloads nothing. Exits with 1 if the two differ.
import { readFileSync } from "node:fs"
import { join, resolve } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { Effect, Scope } from "effect"
import type { TranscribeEnd } from "#engines/protocol/Engine.ts"
import { make as makeLogMel } from "#engines/shared/listening/LogMel.ts"
import { whisperHfOnnx } from "#engines/whisper/WhisperEngine.ts"
import { clipNames, clipSamples, demoFiles } from "./Models.ts"

/** Largest difference of two features. */
const featureTolerance = 1e-4
/** More bytes than a clip's text has. */
const mostTokens = 400

interface Tensor {
  readonly data: Float32Array | BigInt64Array
  readonly dims: ReadonlyArray<number>
}
type Extract = (samples: Float32Array) => Promise<{ readonly input_features: Tensor }>
interface Model {
  readonly generate: (options: object) => Promise<Tensor>
}
/** The part of the package that is called. */
interface Transformers {
  readonly env: { allowRemoteModels: boolean; localModelPath: string; readonly version: string }
  readonly WhisperFeatureExtractor: new (config: unknown) => Extract
  readonly WhisperForConditionalGeneration: {
    readonly from_pretrained: (name: string, options: object) => Promise<Model>
  }
}

const folder = process.argv[2]
if (folder === undefined) throw new Error("name the folder of @huggingface/transformers")
const packageJson = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as {
  readonly exports: { readonly node: { readonly import: { readonly default: string } } }
}
const entry = pathToFileURL(resolve(folder, packageJson.exports.node.import.default)).href
const transformers = (await import(entry)) as Transformers
const modelFolder = fileURLToPath(new URL("../../models/", import.meta.url))
transformers.env.allowRemoteModels = false
transformers.env.localModelPath = modelFolder

const extract = new transformers.WhisperFeatureExtractor(
  JSON.parse(readFileSync(demoFiles.preprocessor, "utf8")),
)
const theirs = await transformers.WhisperForConditionalGeneration.from_pretrained("whisper-demo-en", {
  dtype: "fp32",
  device: "cpu",
})

const scope = Scope.makeUnsafe()
const scoped = <A, E>(effect: Effect.Effect<A, E, Scope.Scope>): Promise<A> =>
  Effect.runPromise(Scope.provide(effect, scope))
const mel = await scoped(makeLogMel({ melBins: 80, fftSize: 400, hopSamples: 160, rateHz: 16_000 }))
// Whole windows of 30 s, as for the published weights, so that both have the same features.
const ours = await scoped(
  whisperHfOnnx.acquire({
    modelId: "compare",
    adapter: "whisper-hf-onnx",
    files: demoFiles,
    options: {},
    threads: 1,
  }),
)
if (ours.kind !== "transcription") throw new Error("no transcription engine")

const hear = (samples: Float32Array, timestamps: boolean): Promise<TranscribeEnd> =>
  Effect.runPromise(
    ours.transcribe(
      {
        samples,
        language: "en",
        prompt: "",
        previousTokens: [],
        temperature: 0,
        punctuation: undefined,
        words: false,
        last: true,
        timestamps,
      },
      { started: () => {}, push: () => {}, paused: () => false, resumed: Effect.void },
    ),
  )

const [startOfTranscript, endOfText] = [257, 256]
/** The package's tokens after the prompt, without the end token. */
const greedy = async (features: Tensor, timestamps: boolean): Promise<ReadonlyArray<number>> => {
  const output = await theirs.generate({
    inputs: features,
    language: "en",
    task: "transcribe",
    return_timestamps: timestamps,
    max_new_tokens: mostTokens,
  })
  const all = Array.from(output.data as BigInt64Array, Number)
  // Start, language and task; without timestamps also the token for that.
  const promptLength = timestamps ? 3 : 4
  if (all[0] !== startOfTranscript) throw new Error("the output does not begin with its prompt")
  return all.slice(promptLength).filter((token) => token !== endOfText)
}

let worst = 0
const agreed = { plain: 0, timed: 0 }
const names = clipNames()
for (const name of names) {
  const samples = clipSamples(name)
  const { input_features: features } = await extract(samples)
  const own = mel.compute(samples, 3_000)
  const expected = features.data as Float32Array
  if (expected.length !== own.length) throw new Error(`${expected.length} features against ${own.length}`)
  let difference = 0
  for (let i = 0; i < own.length; i++) difference = Math.max(difference, Math.abs(own[i]! - expected[i]!))
  worst = Math.max(worst, difference)
  const same = async (timestamps: boolean) => {
    const [one, other] = [(await hear(samples, timestamps)).tokens ?? [], await greedy(features, timestamps)]
    return { equal: one.join() === other.join(), one, other }
  }
  const plain = await same(false)
  const timed = await same(true)
  if (plain.equal) agreed.plain++
  if (timed.equal) agreed.timed++
  console.info(
    `${name}: features within ${difference.toExponential(1)}, ${plain.one.length} tokens ` +
      `${plain.equal ? "agree" : `differ (${plain.other.length})`}, with times ${timed.equal ? "agree" : "differ"}`,
  )
}
console.info(
  `features within ${worst.toExponential(2)}; tokens agree in ${agreed.plain} of ${names.length} clips, ` +
    `with times in ${agreed.timed}`,
)
process.exit(worst <= featureTolerance && agreed.plain === names.length ? 0 : 1)
