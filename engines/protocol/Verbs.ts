// The table of what engines do, by kind of model: the name of the verb, the request it takes, the events of a request, and
// the facts of a loaded engine. The channel, the scheduler, the registry and the adapters are typed by it. A new kind of
// model is one more row here; the compiler then names every place that has to know it.
import type { DetectEnd, Detected, DetectionFacts, DetectRequest, DetectStarted } from "./Detection.ts"
import type { EmbeddingFacts, EmbedEnd, EmbedRequest, EmbedStarted, Vectors } from "./Embedding.ts"
import type { PcmChunk, SpeechFacts, SynthesizeEnd, SynthesizeRequest, SynthesizeStarted } from "./Speech.ts"
import type {
  GenerateCall,
  GenerateEnd,
  GenerateRequest,
  GenerateStarted,
  TextDelta,
  TextFacts,
} from "./Text.ts"
import type {
  Segment,
  TranscribeCall,
  TranscribeEnd,
  TranscribeRequest,
  TranscribeStarted,
  TranscriptionFacts,
} from "./Transcription.ts"

/** One row of the table. The events of a request are `started` once, `unit` any number of times, then `end` or an error. */
interface VerbShape {
  /** The adapter's function, and the type of the message that carries a request to the engine. */
  readonly verb: string
  /** As the gateway sends it. */
  readonly request: object
  /** As the adapter gets it. */
  readonly input: object
  readonly started: object
  readonly unit: object
  readonly end: object
  /** Known once the engine has loaded. `slots`: requests that run side by side; `summary`: one line for operators. */
  readonly facts: { readonly slots: number; readonly summary: string; readonly prepares?: boolean }
}

type Row<R extends VerbShape> = R

export interface Verbs {
  readonly text: Row<{
    readonly verb: "generate"
    readonly request: GenerateCall
    readonly input: GenerateRequest
    readonly started: GenerateStarted
    readonly unit: TextDelta
    readonly end: GenerateEnd
    readonly facts: TextFacts
  }>
  readonly speech: Row<{
    readonly verb: "synthesize"
    readonly request: SynthesizeRequest
    readonly input: SynthesizeRequest
    readonly started: SynthesizeStarted
    readonly unit: PcmChunk
    readonly end: SynthesizeEnd
    readonly facts: SpeechFacts
  }>
  readonly transcription: Row<{
    readonly verb: "transcribe"
    readonly request: TranscribeCall
    readonly input: TranscribeRequest
    readonly started: TranscribeStarted
    readonly unit: Segment
    readonly end: TranscribeEnd
    readonly facts: TranscriptionFacts
  }>
  readonly embedding: Row<{
    readonly verb: "embed"
    readonly request: EmbedRequest
    readonly input: EmbedRequest
    readonly started: EmbedStarted
    readonly unit: Vectors
    readonly end: EmbedEnd
    readonly facts: EmbeddingFacts
  }>
  readonly detection: Row<{
    readonly verb: "detect"
    readonly request: DetectRequest
    readonly input: DetectRequest
    readonly started: DetectStarted
    readonly unit: Detected
    readonly end: DetectEnd
    readonly facts: DetectionFacts
  }>
}

/** The kinds of models. */
export type EngineKind = keyof Verbs

export type Verb<K extends EngineKind> = Verbs[K]["verb"]
export type Request<K extends EngineKind> = Verbs[K]["request"]
export type Started<K extends EngineKind> = Verbs[K]["started"]
export type Unit<K extends EngineKind> = Verbs[K]["unit"]
export type End<K extends EngineKind> = Verbs[K]["end"]
export type Facts<K extends EngineKind> = Verbs[K]["facts"]

/** The verb of each kind, as a value. */
export const verbs: { readonly [K in EngineKind]: Verb<K> } = {
  text: "generate",
  speech: "synthesize",
  transcription: "transcribe",
  embedding: "embed",
  detection: "detect",
}
