// The models of a node (protocol 6), and its health (protocol 13.1).
import { Schema } from "effect"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import { errors } from "#http/Declared.ts"
import { modelPath } from "#http/NotFound.ts"
import { Authentication, TakesOperatorToken } from "../access/Authentication.ts"
import { HealthRecord } from "../operations/Health.ts"
import { ModelList, ModelListEntry, ModelStatusRecord } from "../operations/Models.ts"

const modelId = {
  id: Schema.String.annotate({
    description: "A model's id; a slash in it may be written as it is or as `%2F`",
  }),
}

export class ModelsGroup extends HttpApiGroup.make("Models")
  .add(
    HttpApiEndpoint.get("listModels", "/v1/models", { success: ModelList }),
    HttpApiEndpoint.get("oneModel", modelPath, {
      params: modelId,
      success: ModelListEntry,
      error: errors("ModelNotLoaded"),
    }),
    // The same with the slash of an id like `Qwen/Qwen3-0.6B` as it is; OpenAPI knows no parameter with a slash.
    HttpApiEndpoint.get("oneModelOfOwner", "/v1/models/:owner/:name", {
      params: { owner: Schema.String, name: Schema.String },
      success: ModelListEntry,
      error: errors("ModelNotLoaded"),
    }).annotate(OpenApi.Exclude, true),
    HttpApiEndpoint.get("modelStatus", "/v1/models/status", { success: ModelStatusRecord }),
  )
  .annotate(TakesOperatorToken, true)
  .middleware(Authentication) {}

const healthRecord = <const Status extends string>(...statuses: ReadonlyArray<Status>) =>
  Schema.Struct({ ...HealthRecord.fields, status: Schema.Literals(statuses) })

const serves = healthRecord("healthy", "degraded")
const servesNothing = healthRecord("unhealthy")

export class SystemGroup extends HttpApiGroup.make("System").add(
  HttpApiEndpoint.get("health", "/health", {
    success: [serves, servesNothing.pipe(HttpApiSchema.status(503))],
  }),
) {}
