// ONNX Runtime as the floors of the benches use it: sessions with the library's own settings, and the empty cache of a Whisper decoder.
import { InferenceSession, Tensor } from "onnxruntime-node"

export type Feeds = Record<string, Tensor>

export const openSession = (path: string, threads: number): Promise<InferenceSession> =>
  InferenceSession.create(path, { intraOpNumThreads: threads, interOpNumThreads: 1, logSeverityLevel: 3 })

/** The cache inputs of a decoder for one sequence without tokens: their dimension of positions is 0. */
export const emptyPast = ({ inputMetadata }: InferenceSession): Feeds =>
  Object.fromEntries(
    inputMetadata.flatMap((input) => {
      if (!input.isTensor || !input.name.startsWith("past_key_values.")) return []
      const dims = input.shape.map((size, axis) => (axis === 0 ? 1 : axis === 2 ? 0 : Number(size)))
      return [[input.name, new Tensor("float32", new Float32Array(0), dims)]]
    }),
  )
