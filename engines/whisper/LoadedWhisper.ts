// A loaded Whisper model: its graphs and what they are called with. Closing its scope frees the memory.
import type * as Semaphore from "effect/Semaphore"
import type { KeywordGraphs } from "../shared/listening/KeywordGraph.ts"
import type { LogMel } from "../shared/listening/LogMel.ts"
import type { OnnxSession } from "../shared/onnx/OnnxSession.ts"
import type { DecoderGraph } from "./DecoderGraph.ts"
import type { MelMemory } from "./features/MelMemory.ts"
import type { WhisperModel } from "./WhisperModel.ts"

/** Everything that lives as long as the engine. */
export interface LoadedWhisper {
  readonly model: WhisperModel
  readonly encoder: OnnxSession
  readonly decoder: DecoderGraph
  readonly mel: LogMel
  readonly melMemory: MelMemory
  readonly gate: Semaphore.Semaphore
  /** See WhisperOptions. */
  readonly variableLength: boolean
  /** True if the encoder takes less than a window for captions, see ShortAudio. */
  readonly shortAudio: boolean
  readonly pieceSamples: number | undefined
  /** Pieces of one request that are drafted side by side; 1 if that saves no time. */
  readonly piecesTogether: number
  /** The phrases of the last requests. */
  readonly keywords: KeywordGraphs
  /** Language codes that a request may name. */
  readonly languages: ReadonlyArray<string>
}
