// `npm run bench -- sizes <kind> <size>`: generates weights of real size and prints their path. A kind is a
// subcommand.
import { Console, Effect, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { detectionSizes, detectionWeights } from "./detection/Detection.ts"
import { embeddingSizes, embeddingWeights } from "./embedding/EmbeddingWeights.ts"
import { kokoroSizes, kokoroWeights } from "./kokoro/Kokoro.ts"
import { textSizes, textWeights } from "./text/TextWeights.ts"
import { transducerSizes, transducerWeights } from "./transducer/Transducer.ts"
import { visionSizes, visionWeights } from "./vision/VisionWeights.ts"
import { whisperSizes, whisperWeights } from "./whisper/Whisper.ts"

/** The weights could not be written, for example because the temporary folder is full. */
class NotGenerated extends Schema.TaggedError<NotGenerated>()("NotGenerated", { detail: Schema.String }) {
  override get message(): string {
    return `the weights cannot be generated: ${this.detail}`
  }
}

const printed = (generate: () => Promise<string>) =>
  Effect.tryPromise({
    try: generate,
    catch: (cause) => new NotGenerated({ detail: cause instanceof Error ? cause.message : String(cause) }),
  }).pipe(Effect.flatMap((path) => Console.log(path)))

const text = Command.make(
  "text",
  { size: Argument.Literals("SIZE", textSizes).pipe(Argument.withDescription("Parameters; 8 bits, or 4")) },
  ({ size }) => printed(() => textWeights(size)),
).pipe(Command.withDescription("A GGUF file of llama or qwen3 shape"))

const whisper = Command.make(
  "whisper",
  { size: Argument.Literals("SIZE", whisperSizes).pipe(Argument.withDescription("32 bits, or 8")) },
  ({ size }) => printed(() => whisperWeights(size)),
).pipe(Command.withDescription("A folder of ONNX files of whisper shape; turbo is large-v3-turbo"))

const kokoro = Command.make(
  "kokoro",
  { size: Argument.Literals("SIZE", kokoroSizes).pipe(Argument.withDescription("Parameters; 32 bits")) },
  ({ size }) => printed(() => kokoroWeights(size)),
).pipe(Command.withDescription("A folder of ONNX files of Kokoro's shape"))

const embedding = Command.make(
  "embedding",
  { size: Argument.Literals("SIZE", embeddingSizes).pipe(Argument.withDescription("Parameters; 8 bits")) },
  ({ size }) => printed(() => embeddingWeights(size)),
).pipe(Command.withDescription("A GGUF file of BERT's shape"))

const detection = Command.make(
  "detection",
  { size: Argument.Literals("SIZE", detectionSizes).pipe(Argument.withDescription("Which model")) },
  ({ size }) => printed(() => detectionWeights(size)),
).pipe(Command.withDescription("A folder with an ONNX graph of the shape of Silero VAD or Smart Turn"))

const transducer = Command.make(
  "transducer",
  {
    size: Argument.Literals("SIZE", transducerSizes).pipe(
      Argument.withDescription("Parameters; 8 bits, or 4"),
    ),
  },
  ({ size }) => printed(() => transducerWeights(size)),
).pipe(
  Command.withDescription("A folder of ONNX files of the shape of Nemotron streaming, as for sherpa-onnx"),
)

const vision = Command.make(
  "vision",
  { size: Argument.Literals("SIZE", visionSizes).pipe(Argument.withDescription("Family, or parameters")) },
  ({ size }) =>
    printed(async () => {
      const { mmproj, weights } = await visionWeights(size)
      return `${weights}\n${mmproj}`
    }),
).pipe(Command.withDescription("GGUF files of a model that takes pictures: text model and mmproj"))

export const sizesCommand = Command.make("sizes").pipe(
  Command.withDescription("Weights of real shape with random values, generated into the temporary folder"),
  Command.withSubcommands([text, vision, whisper, kokoro, embedding, detection, transducer]),
)
