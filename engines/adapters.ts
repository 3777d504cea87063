// Adapter name → lazy import. A new adapter is a folder, a line here and a row in AdapterFacts: the compiler wants both, of
// one kind. Lazy, because an engine process should load the native code of its own adapter only.
import type { AdapterName, KindOf } from "./AdapterFacts.ts"
import type { EngineDescriptor } from "./protocol/Engine.ts"

const table: { readonly [N in AdapterName]: () => Promise<EngineDescriptor<KindOf<N>>> } = {
  "chatterbox-onnx": () => import("./chatterbox/ChatterboxOnnx.ts").then((module) => module.chatterboxOnnx),
  "cohere-hf-onnx": () => import("./cohere/CohereEngine.ts").then((module) => module.cohereHfOnnx),
  fake: () => import("./fake/Fake.ts").then((module) => module.fake),
  "fake-embedding": () => import("./fake/FakeEmbedding.ts").then((module) => module.fakeEmbedding),
  "fake-speech": () => import("./fake/FakeSpeech.ts").then((module) => module.fakeSpeech),
  "fake-transcription": () =>
    import("./fake/FakeTranscription.ts").then((module) => module.fakeTranscription),
  "kokoro-onnx": () => import("./kokoro/KokoroOnnx.ts").then((module) => module.kokoroOnnx),
  "llama-embedding": () =>
    import("./llama/embedding/LlamaEmbedding.ts").then((module) => module.llamaEmbedding),
  "llama-gguf": () => import("./llama/model/LlamaGguf.ts").then((module) => module.llamaGguf),
  "silero-vad-onnx": () => import("./detection/SileroVad.ts").then((module) => module.sileroVadOnnx),
  "smart-turn-onnx": () => import("./detection/SmartTurn.ts").then((module) => module.smartTurnOnnx),
  "style-clone-onnx": () => import("./clone/CloneOnnx.ts").then((module) => module.cloneOnnx),
  "transducer-onnx": () => import("./transducer/TransducerEngine.ts").then((module) => module.transducerOnnx),
  "whisper-hf-onnx": () => import("./whisper/WhisperEngine.ts").then((module) => module.whisperHfOnnx),
}

export const adapters: Readonly<Record<string, () => Promise<EngineDescriptor>>> = table
