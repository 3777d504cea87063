// The answer to an expected failure (protocol 3): status, headers and body as the error's class declares them.
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import { type EdgeError, errorType, failureOf } from "#domain/wire/Failures.ts"
import { CurrentRequest } from "./RequestContext.ts"

export interface Problem {
  readonly status: number
  readonly detail: string
  /** A second sentence, what the caller can do. Only in the error object. */
  readonly advice?: string | undefined
  /** The field of the request that it is about. */
  readonly param?: string | undefined
  readonly code?: string
  /** The body, where it is not `{detail}`. */
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
}

/** Whole seconds, rounded up. At least 1: a client that reads 0 retries at once. */
const wholeSeconds = (ms: number): string => String(Math.max(1, Math.ceil(ms / 1000)))

const headersOf = (error: EdgeError): Record<string, string> => {
  const { headers = {}, retryAfterMs } = failureOf(error)
  const sent: Record<string, string> = {}
  for (const [name, header] of Object.entries(headers)) {
    const value = header.of(error)
    if (value !== undefined) sent[name] = value
  }
  if (retryAfterMs !== undefined) sent["retry-after"] = wholeSeconds(retryAfterMs(error))
  return sent
}

/** The text of an error for callers. */
export const detailOf = (error: EdgeError): string => failureOf(error).detail(error)

export const problemOf = (error: EdgeError): Problem => {
  const { advice, body, code = error._tag, param, status } = failureOf(error)
  const detail = detailOf(error)
  const headers = headersOf(error)
  return {
    status,
    detail,
    advice: advice?.(error),
    param: param?.(error),
    code,
    ...(body === undefined ? {} : { body: body.of(error, detail) }),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
  }
}

/** The object that the exceptions of OpenAI's clients are made from (protocol 3.1). */
const errorObject = ({ advice, code, detail, param, status }: Problem) => ({
  message: advice === undefined ? detail : `${detail}. ${advice}`,
  type: status < 500 ? "invalid_request_error" : "server_error",
  param: param || null,
  code: code ?? null,
})

export const problemResponse = (
  problem: Problem,
  wantsErrorObject = false,
): HttpServerResponse.HttpServerResponse => {
  const { detail, headers, status } = problem
  const plain = wantsErrorObject ? { detail, error: errorObject(problem) } : { detail }
  return HttpServerResponse.jsonUnsafe(problem.body ?? plain, {
    status,
    ...(headers === undefined ? {} : { headers }),
  })
}

/** The answer to a failed request. The failure itself is recorded for the operator's log. */
export const errorResponse = (error: EdgeError): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.map(CurrentRequest, (notes) => {
    notes.failure = error
    return problemResponse(problemOf(error), notes.wantsErrorObject)
  })

/** The object inside a failed stream's last event (protocol 3.5). */
export const streamError = (error: EdgeError): { readonly message: string; readonly type: string } => ({
  message: detailOf(error),
  type: errorType(error),
})
