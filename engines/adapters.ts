// Adapter name → lazy import. Adding an adapter is a folder, a line here and an entry of AdapterFacts. Lazy, because an engine process
// should carry the native code of its own adapter only.
import type { EngineDescriptor } from "./protocol/Engine.ts"

export const adapters: Readonly<Record<string, () => Promise<EngineDescriptor>>> = {
  "chatterbox-onnx": () => import("./chatterbox/ChatterboxOnnx.ts").then((room) => room.chatterboxOnnx),
  "cohere-hf-onnx": () => import("./cohere/CohereEngine.ts").then((room) => room.cohereHfOnnx),
  fake: () => import("./fake/Fake.ts").then((room) => room.fake),
  "fake-speech": () => import("./fake/FakeSpeech.ts").then((room) => room.fakeSpeech),
  "fake-transcription": () => import("./fake/FakeTranscription.ts").then((room) => room.fakeTranscription),
  "kokoro-onnx": () => import("./kokoro/KokoroOnnx.ts").then((room) => room.kokoroOnnx),
  "llama-gguf": () => import("./llama/model/LlamaGguf.ts").then((room) => room.llamaGguf),
  "style-clone-onnx": () => import("./clone/CloneOnnx.ts").then((room) => room.cloneOnnx),
  "whisper-hf-onnx": () => import("./whisper/WhisperEngine.ts").then((room) => room.whisperHfOnnx),
}
