// ONNX Runtime as the floors of the benches use it: sessions with the library's own settings, and the empty cache of a Whisper decoder.
import { InferenceSession, Tensor } from "onnxruntime-node"

export type Feeds = Record<string, Tensor>

export const openSession = (path: string, threads: number): Promise<InferenceSession> =>
  InferenceSession.create(path, { intraOpNumThreads: threads, interOpNumThreads: 1, logSeverityLevel: 3 })

/** Passes the inputs of every call of a session to `onCall` while `work` runs, and lets the call go on. */
export const recordingCalls = async (
  onCall: (feeds: Feeds, fetches: ReadonlyArray<string>) => void,
  work: () => Promise<unknown>,
): Promise<void> => {
  // The type names a factory; the value is the class of the sessions.
  const { prototype } = InferenceSession as unknown as {
    readonly prototype: { run: InferenceSession["run"] }
  }
  const { run } = prototype
  prototype.run = function (this: InferenceSession, feeds: Feeds, fetches: ReadonlyArray<string>) {
    onCall(feeds, fetches)
    return run.call(this, feeds, fetches as never)
  } as typeof run
  try {
    await work()
  } finally {
    prototype.run = run
  }
}

/** The cache inputs of a decoder for one sequence without tokens: their dimension of positions is 0. */
export const emptyPast = ({ inputMetadata }: InferenceSession): Feeds =>
  Object.fromEntries(
    inputMetadata.flatMap((input) => {
      if (!input.isTensor || !input.name.startsWith("past_key_values.")) return []
      const dims = input.shape.map((size, axis) => (axis === 0 ? 1 : axis === 2 ? 0 : Number(size)))
      return [[input.name, new Tensor("float32", new Float32Array(0), dims)]]
    }),
  )
