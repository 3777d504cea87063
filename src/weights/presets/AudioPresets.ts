// Presets of models that transcribe, speak, and detect speech and the ends of turns: ONNX exports. Their repositories have several precisions of each graph.
import type { Preset } from "./Preset.ts"

const transcription = { kind: "transcription" } as const
const speech = { kind: "speech" } as const
const detection = { kind: "detection" } as const

/** Sums of the two graphs with eight bits a weight. */
const graphs = (encoder: string, decoder: string) => ({
  sums: {
    "onnx/encoder_model_quantized.onnx": encoder,
    "onnx/decoder_model_merged_quantized.onnx": decoder,
  },
})

const whisper = (size: string, sizeBytes: number, does: string): Preset => ({
  ...transcription,
  name: `whisper-${size}`,
  does,
  family: "Whisper",
  repository: `onnx-community/whisper-${size}`,
  precisions: ["_quantized", ""],
  sizeBytes,
  // The export names none of its own; that of the model it was made from.
  licence: "apache-2.0",
})

export const audioPresets: ReadonlyArray<Preset> = [
  {
    ...whisper("tiny", 43_613_734, "transcription, 99 languages; the smallest"),
    ...graphs(
      "2af4a414ca47aa30f61246017e5fe82b0a8d229281d1255ba666a2a7f6b84d19",
      "25e807a962b6349356d0ea5d0dfe530b7e5bf0e2a484aeca0359d03143faddd3",
    ),
  },
  {
    ...whisper("base", 79_664_191, "transcription, 99 languages"),
    ...graphs(
      "5862993336bf33acd23736071aae2b32261d3b1b2f37780194460d4ef974dd46",
      "fa3ef9902734ce5ae6f9ef2bdb2ba9a6c4b5785b09f4f420ce036573dc9d090b",
    ),
  },
  {
    ...whisper("small", 252_000_000, "transcription, 99 languages"),
    ...graphs(
      "a43a83f3c5361cd591cfa7c36f14b43cf7cb22f47a415cc14a8d557be800fa92",
      "ec07c3cbb64172c39791e26ee870a65ac22b458c36722bfe2776b3dbf741e0c9",
    ),
  },
  {
    ...whisper("large-v3-turbo", 1_050_000_000, "transcription, 100 languages; the best Whisper here"),
    licence: "mit",
  },
  {
    ...transcription,
    name: "cohere-transcribe",
    does: "transcription, 14 languages, no times",
    family: "Cohere Transcribe",
    repository: "onnx-community/cohere-transcribe-03-2026-ONNX",
    precisions: ["_quantized", "_int8", ""],
    sizeBytes: 2_700_000_000,
    licence: "apache-2.0",
  },
  {
    ...transcription,
    name: "parakeet-tdt-v3",
    does: "transcription, 25 languages, words with times; not streaming",
    family: "Parakeet",
    repository: "istupakov/parakeet-tdt-0.6b-v3-onnx",
    precisions: [".int8", ""],
    sizeBytes: 671_000_000,
    licence: "cc-by-4.0",
  },
  {
    ...transcription,
    name: "nemotron-streaming-en",
    does: "live transcription, English, words with times",
    family: "Nemotron streaming",
    repository: "csukuangfj2/sherpa-onnx-nemotron-speech-streaming-en-0.6b-560ms-int8-2026-04-25",
    precisions: [".int8", ""],
    sizeBytes: 663_000_000,
    licence: "nvidia-open-model-license",
  },
  {
    ...transcription,
    name: "zipformer-streaming-en",
    does: "live transcription, English; the smallest that streams",
    family: "Zipformer",
    repository: "csukuangfj/sherpa-onnx-streaming-zipformer-en-2023-06-26",
    precisions: [".int8", ""],
    sizeBytes: 73_000_000,
    licence: "apache-2.0",
  },
  {
    ...detection,
    name: "silero-vad",
    does: "speech detection in conversations; trained on recordings of people",
    family: "Silero VAD",
    repository: "onnx-community/silero-vad",
    precisions: [""],
    sizeBytes: 2_000_000,
    licence: "mit",
  },
  {
    ...detection,
    name: "smart-turn",
    does: "ends of turns by their sound, 23 languages, for semantic_vad",
    family: "Smart Turn",
    repository: "pipecat-ai/smart-turn-v3",
    precisions: [""],
    sizeBytes: 9_000_000,
    licence: "bsd-2-clause",
  },
  {
    ...speech,
    name: "kokoro",
    does: "speech, 8 languages, 54 voices",
    family: "Kokoro",
    repository: "onnx-community/Kokoro-82M-v1.0-ONNX",
    precisions: [""],
    sizeBytes: 353_736_689,
    licence: "apache-2.0",
    sums: { "onnx/model.onnx": "8fbea51ea711f2af382e88c833d9e288c6dc82ce5e98421ea61c058ce21a34cb" },
  },
  {
    ...speech,
    name: "kokoro-int8",
    does: "speech, 8 languages, 54 voices; 8 bits",
    family: "Kokoro",
    repository: "onnx-community/Kokoro-82M-v1.0-ONNX",
    precisions: ["_quantized"],
    sizeBytes: 120_565_573,
    licence: "apache-2.0",
    sums: {
      "onnx/model_quantized.onnx": "fbae9257e1e05ffc727e951ef9b9c98418e6d79f1c9b6b13bd59f5c9028a1478",
    },
  },
  {
    ...speech,
    name: "kokoro-timestamped",
    does: "speech, 8 languages, 54 voices; a graph that also gives durations",
    family: "Kokoro",
    repository: "onnx-community/Kokoro-82M-v1.0-ONNX-timestamped",
    precisions: [""],
    sizeBytes: 354_000_000,
    licence: "apache-2.0",
  },
  {
    ...speech,
    name: "chatterbox",
    does: "speech with cloned voices, 10 languages",
    family: "Chatterbox",
    repository: "onnx-community/chatterbox-multilingual-ONNX",
    precisions: ["_q4", ""],
    sizeBytes: 1_558_000_000,
    licence: "mit",
    sums: {
      "onnx/speech_encoder.onnx_data": "92f8f290fc9720e169bc2412c507209e20b03f6564bc3243739e25c56f7dfb8f",
      "onnx/embed_tokens.onnx_data": "2a15f7dd73b2ee47f6edf87740324011594b5a528ed6471ae55e327ed6cad68c",
      "onnx/language_model_q4.onnx": "7f8cdca83b2493536cbf3acf421199808a3d68736f55f4eabd20ef8a99da4313",
      "onnx/language_model_q4.onnx_data": "e79ab8784122a501718868b9631ff46e151c552d9b24e50f25d721f375e3526c",
      "onnx/conditional_decoder.onnx_data":
        "51d58345a272747665ec9d5bb61e01835258a940e321a288582ac4c18cf01b5a",
    },
  },
]
