// The tokenizer and the sizes of a GGUF file, without its weights: for checks of a file against public token ids. The tokenizer is the
// one that requests use.
import * as Effect from "effect/Effect"
import { NativeLog } from "../native/NativeLog.ts"
import { safeTokenizer } from "../prompt/SafeTokenizer.ts"
import { openLlama } from "./LoadedGguf.ts"

export interface GgufVocabulary {
  /** @param special whether names of control tokens in the text mean these tokens */
  readonly encode: (text: string, special: boolean) => ReadonlyArray<number>
  /** What the header says of the network: `architecture`, `vocabulary` and sizes by the names of their keys. */
  readonly dimensions: Readonly<Record<string, number | string>>
}

const numbersIn = (record: object | undefined): Readonly<Record<string, number>> =>
  Object.fromEntries(
    Object.entries(record ?? {}).filter((pair): pair is [string, number] => typeof pair[1] === "number"),
  )

/** Closing the scope frees the library. */
export const openVocabulary = Effect.fnUntraced(function* (path: string) {
  const log = new NativeLog(path)
  const spec = { modelId: "", adapter: "llama-gguf", files: { weights: path }, options: {}, threads: 1 }
  const llama = yield* openLlama(spec, { gpu: "off" }, log)
  const model = yield* Effect.acquireRelease(
    log.attempt("cannot read the vocabulary", () => llama.loadModel({ modelPath: path, vocabOnly: true })),
    (loaded) => Effect.promise(() => loaded.dispose()),
  )
  const tokenize = safeTokenizer(model)
  const { architectureMetadata, metadata } = model.fileInfo
  return {
    encode: (text, special) => tokenize(text, special),
    dimensions: {
      architecture: metadata.general?.architecture ?? "",
      vocabulary: metadata.tokenizer?.ggml?.tokens?.length ?? 0,
      ...numbersIn(architectureMetadata),
      ...numbersIn(architectureMetadata.attention),
    },
  } satisfies GgufVocabulary
})
