// ONNX Runtime without an engine, in a process of its own: sessions with the library's settings on weights of a known layout, and
// their first result. A transcriber is fed zeros in the shapes of real inputs. The floor of the loads of models.
import { Tensor } from "onnxruntime-node"
import { serveCommands } from "./CommandChannel.ts"
import { emptyPast, type Feeds, openSession } from "./Onnx.ts"

const zeros = (...dims: ReadonlyArray<number>): Tensor =>
  new Tensor("float32", new Float32Array(dims.reduce((product, each) => product * each, 1)), dims)

/** Token ids; 1 is one in every vocabulary here. */
const ids = (count: number): Tensor => new Tensor("int64", new BigInt64Array(count).fill(1n), [1, count])

/** What a synthesiser gets: the length of its audio depends on both. */
export interface SpokenInput {
  readonly symbols: ReadonlyArray<number>
  readonly style: ReadonlyArray<number>
}

interface Transcriber {
  readonly encoder: string
  readonly decoder: string
  readonly threads: number
  /** Calls of the decoder, the first with the four tokens that begin a transcript. */
  readonly decoderCalls: number
}

interface Speaker extends SpokenInput {
  readonly model: string
  readonly threads: number
}

const melFrames = 3_000

const commands = {
  /** A window of 30 s. */
  transcribe: async ({ decoder, decoderCalls, encoder, threads }: Transcriber): Promise<void> => {
    const hearing = await openSession(encoder, threads)
    const writing = await openSession(decoder, threads)
    const features = hearing.inputMetadata[0]
    if (features?.isTensor !== true) throw new Error("no encoder")
    const { last_hidden_state } = (await hearing.run({
      input_features: zeros(1, Number(features.shape[1]), melFrames),
    })) as Feeds
    let past = emptyPast(writing)
    for (let call = 0; call < decoderCalls; call++) {
      const first = call === 0
      const outputs = (await writing.run({
        ...past,
        input_ids: ids(first ? 4 : 1),
        encoder_hidden_states: last_hidden_state!,
        use_cache_branch: new Tensor("bool", [!first], [1]),
      })) as Feeds
      const present = Object.entries(outputs).filter(
        // Later calls return no keys of the audio.
        ([name]) => name.startsWith("present.") && (first || name.includes(".decoder.")),
      )
      past = {
        ...past,
        ...Object.fromEntries(
          present.map(([name, value]) => [name.replace("present.", "past_key_values."), value]),
        ),
      }
    }
  },
  /** A piece of speech. */
  speak: async ({ model, style, symbols, threads }: Speaker): Promise<void> => {
    const session = await openSession(model, threads)
    await session.run({
      input_ids: new Tensor("int64", BigInt64Array.from(symbols, BigInt), [1, symbols.length]),
      style: new Tensor("float32", Float32Array.from(style), [1, style.length]),
      speed: new Tensor("float32", [1], [1]),
    })
  },
}

export type BareOnnxCommands = typeof commands

serveCommands(commands)
