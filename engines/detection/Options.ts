// The options of the adapters `silero-vad-onnx` and `smart-turn-onnx` in a catalog entry: none but the device. The gateway checks catalogs with
// this schema, so nothing native is imported here.
import * as Schema from "effect/Schema"
import { executionProvider } from "../shared/onnx/ExecutionProvider.ts"

export const DetectionOptions = Schema.Struct(executionProvider)
