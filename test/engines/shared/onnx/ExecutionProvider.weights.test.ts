// The execution provider that a catalog names: `cpu` works, CUDA without its files fails and names what is missing,
// and any other value is refused.
import { existsSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { optionsOf } from "#engines/shared/onnx/OnnxOptions.ts"
import * as OnnxSession from "#engines/shared/onnx/OnnxSession.ts"
import { engineSpec } from "../../../support/engines/EngineHarness.ts"
import { onlyWhere } from "../../../support/groups/Needs.ts"
import { builtInModel } from "../../../support/nodes/BuiltInModels.ts"

const { source } = builtInModel("tts-3b-ml").files?.styleEncoder as { readonly source: string }
const bin = join(
  dirname(createRequire(import.meta.url).resolve("onnxruntime-node/package.json")),
  `bin/napi-v6/${process.platform}/${process.arch}`,
)
const hasCuda = existsSync(join(bin, "libonnxruntime_providers_cuda.so"))
const kokoroOptions = (options: Readonly<Record<string, unknown>>) =>
  optionsOf({ ...engineSpec("kokoro-onnx", {}, options), threads: 3 })

it.effect("reads the catalog's word", () =>
  Effect.gen(function* () {
    expect(yield* kokoroOptions({ slots: 8 })).toEqual({ ep: "cpu", threads: 3 })
    expect(yield* kokoroOptions({ ep: "cuda" })).toEqual({ ep: "cuda", threads: 3 })
    const error = yield* Effect.flip(kokoroOptions({ ep: "tpu" }))
    expect(error).toMatchObject({ reason: "LoadFailed", detail: expect.stringContaining("options") })
  }),
)

// Where an operator has fetched CUDA's files, whether it works depends on the machine.
it.live(
  "fails to load with cuda where its files are not, and does not fall back",
  () =>
    Effect.gen(function* () {
      yield* OnnxSession.open(source, yield* kokoroOptions({ ep: "cpu" }))
      const error = yield* Effect.flip(OnnxSession.open(source, yield* kokoroOptions({ ep: "cuda" })))
      expect(error).toMatchObject({
        reason: "LoadFailed",
        detail: expect.stringMatching(
          /^style_encoder\.onnx: .*\(CUDA needs files .*docs\/operations\.md\)$/s,
        ),
      })
    }).pipe(Effect.scoped),
  onlyWhere(!hasCuda, "the libraries of CUDA are installed"),
)
