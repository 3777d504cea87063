// The options of the `transducer-onnx` adapter in a catalog entry. Decoded at a load. The gateway checks catalogs with the same schema, so
// nothing native is imported here.
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { integerFrom, numberFrom, withDefault } from "#domain/models/EntrySchemas.ts"
import { executionProvider } from "../shared/onnx/ExecutionProvider.ts"

/** Chunks of cache-aware encoders, milliseconds: 8 · (R + 1) feature frames of 10 ms, for the right contexts R that were trained. */
const chunkMs = [80, 160, 320, 560, 1_120] as const

export const TransducerOptions = Schema.Struct({
  ...executionProvider,
  /** Requests that are decoded side by side, interleaved. A guess. */
  slots: withDefault(integerFrom(1, 64), 4),
  /** Milliseconds of audio of one call of a streaming encoder. Absent: what the graph or its configuration says, else 560. */
  chunkMs: Schema.optionalKey(Schema.Literals(chunkMs)),
  /** Encoder frames that a cache-aware encoder remembers, for a graph that does not say. */
  leftFrames: withDefault(integerFrom(1, 1_000), 70),
  /**
   * Seconds of the longest piece that is transcribed by itself. A streaming model begins anew behind it; an offline one hears it at once,
   * and the published exports fail above 400 s.
   */
  pieceSeconds: withDefault(numberFrom(8, 120), 30),
  /**
   * Live sessions whose encoder states are kept between their requests. A session beyond them is transcribed anew from the beginning of its
   * piece. A state of the published 0.6 B exports has about 8 MB.
   */
  keptStreams: withDefault(integerFrom(1, 1_000), 16),
  /** ISO-639-1 codes that the model knows. Absent: those of its configuration, else English. */
  languages: Schema.optionalKey(Schema.NonEmptyArray(Schema.NonEmptyString)),
  /** Most tokens of one frame. Absent: the configuration's, else 10. Always 1 for Zipformer. */
  mostPerFrame: Schema.optionalKey(integerFrom(1, 100)),
})

export type TransducerOptions = typeof TransducerOptions.Type

/** Encoder caches of the published 0.6 B exports: 24 layers of 70 frames of 1,024 values, and the ends of their convolutions. */
const streamBytes = 24 * (70 + 8) * 1_024 * 4

const decodeKept = Schema.decodeUnknownOption(
  Schema.Struct({ keptStreams: TransducerOptions.fields.keptStreams }),
)

/** Most memory of the streams that are kept. */
export const keptStreamBytes = (options: unknown): number =>
  Option.match(decodeKept(options ?? {}), {
    onNone: () => 0,
    onSome: ({ keptStreams }) => keptStreams * streamBytes,
  })
