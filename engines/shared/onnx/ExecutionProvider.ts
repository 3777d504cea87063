// The option of every ONNX adapter that selects the device of its graphs. Imports no native code, because the gateway
// checks catalogs with it.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

/** ONNX Runtime's execution provider. `cuda` needs files that the package does not contain: docs/operations.md. */
export const executionProvider = {
  ep: Schema.Literals(["cpu", "cuda"]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("cpu" as const))),
}
