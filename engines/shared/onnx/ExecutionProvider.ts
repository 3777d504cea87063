// The option of every ONNX adapter that selects the device of its graphs. Imports no native code, because the gateway
// checks catalogs with it.
import * as Schema from "effect/Schema"
import { withDefault } from "#domain/models/EntrySchemas.ts"

/** ONNX Runtime's execution provider. `cuda` needs files that the package does not contain: docs/operations.md. */
export const executionProvider = {
  ep: withDefault(Schema.Literals(["cpu", "cuda"]), "cpu"),
}
