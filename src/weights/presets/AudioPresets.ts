// Presets of models that transcribe and speak: ONNX exports. Their repositories have several precisions of each graph.
import type { Preset } from "./Preset.ts"

const transcription = { kind: "transcription" } as const
const speech = { kind: "speech" } as const

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
  whisper("tiny", 44_000_000, "transcription, 99 languages; the smallest"),
  whisper("base", 80_000_000, "transcription, 99 languages"),
  whisper("small", 252_000_000, "transcription, 99 languages"),
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
    ...speech,
    name: "kokoro",
    does: "speech, English, 28 voices",
    family: "Kokoro",
    repository: "onnx-community/Kokoro-82M-v1.0-ONNX",
    precisions: [""],
    sizeBytes: 340_000_000,
    licence: "apache-2.0",
  },
  {
    ...speech,
    name: "kokoro-int8",
    does: "speech, English, 28 voices; 8 bits",
    family: "Kokoro",
    repository: "onnx-community/Kokoro-82M-v1.0-ONNX",
    precisions: ["_quantized"],
    sizeBytes: 107_000_000,
    licence: "apache-2.0",
  },
  {
    ...speech,
    name: "kokoro-timestamped",
    does: "speech, English, 28 voices; a graph that also gives durations",
    family: "Kokoro",
    repository: "onnx-community/Kokoro-82M-v1.0-ONNX-timestamped",
    precisions: [""],
    sizeBytes: 340_000_000,
    licence: "apache-2.0",
  },
  {
    ...speech,
    name: "chatterbox",
    does: "speech with cloned voices, 10 languages",
    family: "Chatterbox",
    repository: "onnx-community/chatterbox-multilingual-ONNX",
    precisions: ["_q4", ""],
    sizeBytes: 1_560_000_000,
    licence: "mit",
  },
]
