// Deletion of organizations and of parts of them (protocol 12.12 to 12.15). Not for the operator token, which opens nothing that belongs to
// an organization.
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import { errors } from "#http/Declared.ts"
import { Authentication } from "../access/Authentication.ts"
import { DeletionRecord } from "../operations/Deletion.ts"
import { QueryCheck } from "./QueryErrors.ts"
import { text } from "./SharedReplies.ts"

const ofDeletion = ["Forbidden", "InvalidRequest", "BodyTooLarge", "AccountNotFound", "JobNotFound"] as const

export class DeletionGroup extends HttpApiGroup.make("Deletion")
  .add(
    HttpApiEndpoint.delete("deleteOrg", "/v1/orgs", {
      query: { org: text },
      success: DeletionRecord,
      error: errors(...ofDeletion),
    }).middleware(QueryCheck),
    HttpApiEndpoint.delete("deleteUser", "/v1/orgs/users", {
      query: { org: text, user: text },
      success: DeletionRecord,
      error: errors(...ofDeletion),
    }).middleware(QueryCheck),
    HttpApiEndpoint.delete("deleteJob", "/v1/orgs/jobs", {
      query: { org: text, job_id: text },
      success: DeletionRecord,
      error: errors(...ofDeletion),
    }).middleware(QueryCheck),
    HttpApiEndpoint.delete("deleteAnswers", "/v1/orgs/answers", {
      query: { org: text },
      success: DeletionRecord,
      error: errors(...ofDeletion),
    }).middleware(QueryCheck),
  )
  .middleware(Authentication) {}
