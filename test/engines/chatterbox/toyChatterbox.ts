// Random-weight graphs of the Chatterbox contract, written to a temporary folder, with a tokenizer of letters. The
// language model emits the stop token once it has seen a given number of positions, so tests know how long a piece is;
// its other choices depend on the text, the voice and everything said before.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { chirp, wavBytes } from "../../support/audio/AudioFiles.ts"
import { type ElementType, ToyGraph } from "../../support/engines/ToyOnnxGraph.ts"

const modelWidth = 8
const headCount = 2
const headWidth = modelWidth / headCount
const vocabulary = 8194
/** The voice's rows in front of the text, and the tokens of its clip. */
const voiceRows = 3
const promptTokens = [11, 12]
/** Of one speech token, 25 of them a second. */
export const samplesPerToken = 960

interface ToyOptions {
  /** Number of positions (voice, text and speech together) from which on the model stops. */
  readonly stopAt: number
  readonly cache: ElementType
  /** Inputs that some exports have and others have not. */
  readonly positionIds: boolean
  readonly exaggeration: boolean
  /** Only the last position's logits are returned. */
  readonly lastOnly: boolean
  readonly random: boolean
}

const defaults: ToyOptions = {
  stopAt: 60,
  cache: "float32",
  positionIds: true,
  exaggeration: true,
  lastOnly: false,
  random: false,
}

/** Values in (−1, 1) that an index decides, without a pattern (Knuth's multiplicative hash, twice). */
const noise = (index: number): number => {
  const once = Math.imul(index + 1, 2_654_435_761) >>> 0
  return (Math.imul(once ^ (once >>> 15), 2_246_822_519) >>> 0) / 2 ** 31 - 1
}
const table = (graph: ToyGraph, rows: number, columns: number, seed: number): string =>
  graph.constant(
    "float32",
    [rows, columns],
    Array.from({ length: rows * columns }, (_, i) => noise(i + seed)),
  )

const speechEncoder = (): Uint8Array => {
  const graph = new ToyGraph()
  const audio = graph.input("audio_values", "float32", [1, "samples"])
  // The toy's voice: the mean magnitude of the clip's samples.
  const size = graph.op("ReduceMean", [graph.op("Abs", [audio])], { axes: [1], keepdims: 1 })
  const features = graph.op("Mul", [
    graph.constant(
      "float32",
      [1, voiceRows, modelWidth],
      Array.from({ length: voiceRows * modelWidth }, (_, i) => noise(i + 5)),
    ),
    graph.op("Reshape", [size, graph.ints(1, 1, 1)]),
  ])
  graph.output("audio_features", "float32", [1, voiceRows, modelWidth], features)
  graph.output(
    "audio_tokens",
    "int64",
    [1, promptTokens.length],
    graph.constant("int64", [1, promptTokens.length], promptTokens),
  )
  graph.output("speaker_embeddings", "float32", [1, 192], graph.op("Expand", [size, graph.ints(1, 192)]))
  graph.output(
    "speaker_features",
    "float32",
    [1, 4, 80],
    graph.op("Expand", [graph.op("Reshape", [size, graph.ints(1, 1, 1)]), graph.ints(1, 4, 80)]),
  )
  return graph.encodeModel()
}

const embedTokens = ({ exaggeration, positionIds }: ToyOptions): Uint8Array => {
  const graph = new ToyGraph()
  const ids = graph.input("input_ids", "int64", ["batch", "n"])
  let sum = graph.op("Gather", [table(graph, vocabulary, modelWidth, 1), ids])
  if (positionIds) {
    const positions = graph.input("position_ids", "int64", ["batch", "n"])
    sum = graph.op("Add", [sum, graph.op("Gather", [table(graph, 2_048, modelWidth, 9_001), positions])])
  }
  if (exaggeration) {
    const feeling = graph.input("exaggeration", "float32", ["batch"])
    sum = graph.op("Add", [sum, graph.op("Reshape", [feeling, graph.ints(-1, 1, 1)])])
  }
  graph.output("inputs_embeds", "float32", ["batch", "n", modelWidth], sum)
  return graph.encodeModel()
}

const languageModel = ({ cache, lastOnly, random, stopAt }: ToyOptions): Uint8Array => {
  const graph = new ToyGraph()
  const embeds = graph.input("inputs_embeds", "float32", ["batch", "n", modelWidth])
  const mask = graph.input("attention_mask", "int64", ["batch", "total"])
  const heads = graph.op(
    "Transpose",
    [graph.op("Reshape", [embeds, graph.ints(0, 0, headCount, headWidth)])],
    {
      perm: [0, 2, 1, 3],
    },
  )
  let pooled: string | undefined
  for (const part of ["key", "value"]) {
    const past = graph.input(`past_key_values.0.${part}`, cache, ["batch", headCount, "past", headWidth])
    const own = cache === "float32" ? past : graph.cast(past, "float32")
    const whole = graph.op("Concat", [own, heads], { axis: 2 })
    const shape = ["batch", headCount, "total", headWidth]
    graph.output(`present.0.${part}`, cache, shape, cache === "float32" ? whole : graph.cast(whole, cache))
    if (part === "value") pooled = graph.op("ReduceSum", [whole, graph.ints(2)], { keepdims: 0 })
  }
  const memory = graph.op("Reshape", [pooled!, graph.ints(0, 1, modelWidth)])
  let state = graph.op("Add", [embeds, memory])
  if (random) state = graph.op("Add", [state, graph.op("RandomNormalLike", [state])])
  if (lastOnly) {
    state = graph.op("Slice", [state, graph.ints(-1), graph.ints(2_147_483_647), graph.ints(1)])
  }
  const logits = graph.op("MatMul", [state, table(graph, modelWidth, vocabulary, 77)])
  // The stop token gets (positions − stopAt) · 100, which dominates its own random logit.
  const positions = graph.op("ReduceSum", [mask, graph.ints(1)], { keepdims: 1 })
  const over = graph.op("Sub", [
    graph.cast(positions, "float32"),
    graph.constant("float32", [1], [stopAt - 0.5]),
  ])
  const push = graph.op("Mul", [over, graph.constant("float32", [1], [100])])
  const isStop = graph.constant(
    "float32",
    [1, 1, vocabulary],
    Array.from({ length: vocabulary }, (_, id) => (id === 6562 ? 1 : 0)),
  )
  const bias = graph.op("Mul", [isStop, graph.op("Reshape", [push, graph.ints(-1, 1, 1)])])
  graph.output("logits", "float32", ["batch", "m", vocabulary], graph.op("Add", [logits, bias]))
  return graph.encodeModel()
}

const conditionalDecoder = (): Uint8Array => {
  const graph = new ToyGraph()
  const tokens = graph.input("speech_tokens", "int64", [1, "n"])
  const embeddings = graph.input("speaker_embeddings", "float32", [1, 192])
  const features = graph.input("speaker_features", "float32", [1, "frames", 80])
  const speaker = graph.op("Add", [
    graph.op("ReduceMean", [embeddings], { keepdims: 0 }),
    graph.op("ReduceMean", [features], { keepdims: 0 }),
  ])
  // One tone for each token: its number times a ramp.
  const ramp = Array.from({ length: samplesPerToken }, (_, i) => i / samplesPerToken)
  const pitch = graph.op("Reshape", [graph.cast(tokens, "float32"), graph.ints(-1, 1)])
  const each = graph.op("Sin", [
    graph.op("Mul", [pitch, graph.constant("float32", [1, samplesPerToken], ramp)]),
  ])
  const wave = graph.op("Mul", [graph.op("Reshape", [each, graph.ints(1, -1)]), speaker])
  graph.output("waveform", "float32", [1, "samples"], graph.op("Tanh", [wave]))
  return graph.encodeModel()
}

/** One token a character; the tags of the languages and the space are tokens of their own. */
const tokenizer = () => {
  const added = [
    "[UNK]",
    "[SPACE]",
    "[en]",
    "[fr]",
    "[de]",
    "[zh]",
    "[cj_v]",
    "[cj_n]",
    "[cj_d]",
    "[cj_.]",
    "[cj_1]",
  ]
  const letters = [..."abcdefghijklmnopqrstuvwxyz0123456789.,!?'-"]
  const vocab = Object.fromEntries([...added, ...letters].map((token, id) => [token, id + 1]))
  return {
    version: "1.0",
    truncation: null,
    padding: null,
    added_tokens: added.map((content, id) => ({
      id: id + 1,
      content,
      single_word: false,
      lstrip: false,
      rstrip: false,
      normalized: false,
      special: true,
    })),
    normalizer: null,
    pre_tokenizer: null,
    post_processor: null,
    decoder: null,
    model: { type: "BPE", dropout: null, unk_token: "[UNK]", fuse_unk: false, vocab, merges: [] },
  }
}

/** The files of a toy in a folder that is removed with the scope. */
export const toyChatterbox = (changes: Partial<ToyOptions> = {}) =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "edgewise-chatterbox-"))),
      (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true })),
    ),
    (folder) => {
      const options = { ...defaults, ...changes }
      const file = (name: string, content: Uint8Array | string): string => {
        const path = join(folder, name)
        writeFileSync(path, content)
        return path
      }
      return {
        speechEncoder: file("speech_encoder.onnx", speechEncoder()),
        embedTokens: file("embed_tokens.onnx", embedTokens(options)),
        languageModel: file("language_model.onnx", languageModel(options)),
        conditionalDecoder: file("conditional_decoder.onnx", conditionalDecoder()),
        tokenizer: file("tokenizer.json", JSON.stringify(tokenizer())),
        tokenizerConfig: file("tokenizer_config.json", "{}"),
        defaultVoice: file("default_voice.wav", wavBytes(chirp(48_000, 24_000), 24_000, "16")),
        cangjie: file("cangjie.json", JSON.stringify(["好\tvnd", "號\tvnd", "女\tv"])),
      }
    },
  )
