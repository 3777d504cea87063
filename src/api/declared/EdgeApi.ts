// The edge role's endpoints as one definition: what OpenAPI prints, what EdgeRoutes serves, which paths and methods are
// known.
import * as HttpApi from "effect/http-api/HttpApi"
import * as OpenApi from "effect/http-api/OpenApi"
import { CallsGroup, HangUpGroup } from "./CallsApi.ts"
import { DeletionGroup } from "./DeletionApi.ts"
import { ModelsGroup, SystemGroup } from "./ModelsApi.ts"
import { OperationsGroup } from "./OperationsApi.ts"
import { PagesGroup } from "./PagesApi.ts"

import { RealtimeGroup, SocketsGroup } from "./SocketsApi.ts"
import { SpeechGroup } from "./SpeechApi.ts"
import { TextGroup } from "./TextApi.ts"
import { TranscriptionGroup } from "./TranscriptionApi.ts"
import { UsageGroup } from "./UsageApi.ts"

/** The endpoints that EdgeRoutes serves with HttpApiBuilder. The others are plain routes. */
export class BuiltApi extends HttpApi.make("edgewise")
  .add(SpeechGroup)
  .add(TranscriptionGroup)
  .add(ModelsGroup)
  .add(OperationsGroup)
  .add(DeletionGroup)
  .add(RealtimeGroup)
  .add(CallsGroup)
  .add(HangUpGroup)
  .add(UsageGroup)
  .add(SystemGroup) {}

/** RFC 9110 has no case in a scheme's name, but readers of OpenAPI documents look for the registered `bearer`. */
const withLowerCaseBearer = (document: Record<string, unknown>): Record<string, unknown> => {
  const { components } = document as { readonly components: { readonly securitySchemes: object } }
  const bearer = { type: "http", scheme: "bearer", description: "An API key (svc_…) or a session token" }
  return {
    ...document,
    components: { ...components, securitySchemes: { ...components.securitySchemes, bearer } },
  }
}

export class EdgeApi extends HttpApi.make("edgewise")
  .add(TextGroup)
  .addHttpApi(BuiltApi)
  .add(SocketsGroup)
  .add(PagesGroup)
  .annotateMerge(
    OpenApi.annotations({
      title: "edgewise",
      version: "1",
      description:
        "An OpenAI-style inference node. Unless the operator has brought other weights, the models are small " +
        "demonstration weights (`owned_by: edgewise-demo`): they show that everything works, not what large models can say. " +
        "The guides are in the project's folder `docs`; `docs/start.md` is the first one.",
      transform: withLowerCaseBearer,
    }),
  ) {}
