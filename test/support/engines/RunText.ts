// Runs one request on a text model of a registry, as the services do.
import { Effect } from "effect"
import type { RequestReader } from "#actors/engine/EngineRequest.ts"
import type { ModelRunOptions } from "#actors/model/ModelHandle.ts"
import type { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { GenerateRequest } from "#engines/protocol/Text.ts"

export const runText = (
  registry: ModelRegistry["Service"],
  id: string,
  request: GenerateRequest,
  reader: RequestReader<"text">,
  options?: ModelRunOptions<"text">,
) => Effect.flatMap(registry.get(id, "text"), (model) => model.run(request, reader, options))
