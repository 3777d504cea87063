// The answer to a request that no route takes: preflight, 405 with Allow, or 404. Pure.
import { HttpServerResponse } from "effect/http"
import { type Problem, problemResponse } from "./ErrorBody.ts"
import { wantsErrorObject } from "./RequestContext.ts"

export type KnownPaths = Readonly<Record<string, ReadonlyArray<string>>>

/**
 * Request headers that a page of another origin may send: any, because clients add headers of their own (X-Stainless-… of OpenAI's packages)
 * and no cookie counts here. `*` does not cover Authorization; the others are named for browsers that do not know it.
 */
const allowedHeaders = "Authorization, Content-Type, Idempotency-Key, X-Request-Id, *"

/** Preflight answers may be kept for a day; browsers cap it lower. */
const preflightAgeSeconds = 86_400

export const pathOf = (url: string): string => {
  const end = url.search(/[?#]/)
  return end < 0 ? url : url.slice(0, end)
}

/** A path with a parameter: a model's id, with its slash encoded or plain. */
export const modelPath = "/v1/models/:id"

/** The other path with a parameter: a call's id. */
export const hangUpPath = "/v1/realtime/calls/:id/hangup"

/** The only path that stands for all paths below it: the playground's files. */
export const playgroundFiles = "/playground/*"

/** The id that `form` finds in the path, decoded; undefined for any other path, and for an invalid percent encoding, which no id has. */
const idIn = (path: string, form: RegExp): string | undefined => {
  const text = form.exec(path)?.[1]
  if (text === undefined) return undefined
  try {
    return decodeURIComponent(text)
  } catch {
    return undefined
  }
}

/** The id in a path of that form. */
export const idOfModelPath = (path: string): string | undefined =>
  idIn(path, /^\/v1\/models\/([^/]+(?:\/[^/]+)?)$/)

/** The id in a path of the other form. */
export const idOfHangUp = (path: string): string | undefined =>
  idIn(path, /^\/v1\/realtime\/calls\/([^/]+)\/hangup$/)

/** The entry of the table that a path belongs to. */
export const knownPathOf = (paths: KnownPaths, path: string): string | undefined => {
  if (Object.hasOwn(paths, path)) return path
  if (path.startsWith("/playground/") && Object.hasOwn(paths, playgroundFiles)) return playgroundFiles
  if (Object.hasOwn(paths, hangUpPath) && idOfHangUp(path) !== undefined) return hangUpPath
  return Object.hasOwn(paths, modelPath) && idOfModelPath(path) !== undefined ? modelPath : undefined
}

/** What the sender of an unknown path can do. */
const adviceFor = (path: string): string => {
  if (path.startsWith("/v1/v1/")) return "The base URL of a client has /v1 once"
  return path.startsWith("/v1/")
    ? "This server does not have that endpoint; /docs lists those that it has"
    : "The base URL of a client ends in /v1"
}

export const unmatched = (
  paths: KnownPaths,
  {
    headers,
    method,
    url,
  }: {
    readonly headers: Readonly<Record<string, string | undefined>>
    readonly method: string
    readonly url: string
  },
): HttpServerResponse.HttpServerResponse => {
  const known = knownPathOf(paths, pathOf(url))
  const methods = known === undefined ? undefined : paths[known]
  if (method === "OPTIONS") {
    const allowed = [...(methods ?? ["GET", "POST", "DELETE"]), "OPTIONS"].join(", ")
    return HttpServerResponse.empty({
      status: 204,
      headers: {
        "access-control-allow-methods": allowed,
        "access-control-allow-headers": allowedHeaders,
        "access-control-max-age": String(preflightAgeSeconds),
      },
    })
  }
  const refusal = (problem: Problem) => problemResponse(problem, wantsErrorObject(headers))
  if (methods === undefined) {
    return refusal({ status: 404, detail: "Not Found", advice: adviceFor(pathOf(url)) })
  }
  const allow = [...methods, ...(methods.includes("GET") ? ["HEAD"] : []), "OPTIONS"].join(", ")
  return refusal({ status: 405, detail: "Method Not Allowed", headers: { allow } })
}
