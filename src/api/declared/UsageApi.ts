// What a credential has used (protocol 5.6).
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import { errors } from "#http/Declared.ts"
import { Authentication } from "../access/Authentication.ts"
import { UsageRecord } from "../operations/Usage.ts"
import { QueryCheck } from "./QueryErrors.ts"
import { text } from "./SharedReplies.ts"

export class UsageGroup extends HttpApiGroup.make("Usage")
  .add(
    HttpApiEndpoint.get("usage", "/v1/usage", {
      query: { receipt_id: text },
      success: UsageRecord,
      error: errors("InvalidRequest"),
    }).middleware(QueryCheck),
  )
  .middleware(Authentication) {}
