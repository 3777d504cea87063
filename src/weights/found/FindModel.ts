// What the files of a repository or a folder are: a GGUF model or an ONNX export that an adapter reads.
import { Effect } from "effect"
import type { Choice, FoundModel } from "./FoundModel.ts"
import { ggufModel, ggufOf } from "./GgufModel.ts"
import { onnxModel } from "./OnnxModel.ts"
import { type FoundError, NotUsable, type Repository } from "./Repository.ts"

/** Formats that are not read, by the ending of their files, and what to look for instead. */
const otherFormats: ReadonlyArray<readonly [ending: string, what: string]> = [
  [".safetensors", "safetensors, which edgewise does not read"],
  ["pytorch_model.bin", "PyTorch weights, which edgewise does not read"],
  [".pt", "PyTorch weights, which edgewise does not read"],
  [".ggml", "a GGML file, the format before GGUF"],
]

const advice =
  "look for a repository of the same model with GGUF files (its name often ends in -GGUF) or with an ONNX export"

export const findModel = (repository: Repository, choice: Choice): Effect.Effect<FoundModel, FoundError> =>
  Effect.gen(function* () {
    const gguf = yield* ggufOf(repository, choice)
    if (gguf !== undefined) return yield* ggufModel(repository, gguf, choice)
    const onnx = yield* onnxModel(repository, choice)
    if (onnx !== undefined) return onnx
    const other = otherFormats.find(([ending]) => repository.files.some(({ path }) => path.endsWith(ending)))
    const problem = `has ${other?.[1] ?? "no weights that an adapter reads"}; ${advice}`
    return yield* new NotUsable({ source: repository.source, problem })
  })
