// The parameters of a transcription request: query before form, decoded, and what can be refused before the file is
// sent. Knows neither files nor transcripts.
import { Effect, Schema } from "effect"
import type { HttpServerRequest } from "effect/http"
import { Drain } from "#actors/Drain.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import { modeOf, punctuationOf, TranscriptionParameters } from "#domain/wire/Transcription.ts"
import { Caller } from "#services/Caller.ts"
import { TranscriptionJobs } from "#services/jobs/TranscriptionJobs.ts"
import { findModel } from "#services/ModelLookup.ts"
import { checkLanguage, checkPunctuation } from "#services/TranscriptionRun.ts"
import type { Upload } from "#services/TranscriptionUpload.ts"
import type { JobOptions } from "#store/ledger/JobRows.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { invalidRequestOf } from "../http/JsonBody.ts"
import { keywordsOf } from "../http/Keywords.ts"

export const queryOf = (request: HttpServerRequest.HttpServerRequest) =>
  new URL(request.url, "http://edge").searchParams

const decodeParameters = Schema.decodeUnknownEffect(TranscriptionParameters)

/** Form fields that are read where the query does not have the parameter (protocol 9.2). */
const formFallbacks = [
  "model",
  "language",
  "response_format",
  "temperature",
  "prompt",
  "punctuation",
  "stream",
  "sync",
  "include_timing",
] as const

const includeNames = ["include[]", "include"]

const granularityNames = ["timestamp_granularities[]", "timestamp_granularities"]

type Fields = Upload["fields"]

/** Query before form, decoded. An empty value counts as absent. */
export const parametersOf = Effect.fnUntraced(function* (query: URLSearchParams, fields: Fields) {
  const values: Record<string, string> = {}
  for (const name of formFallbacks) {
    const value = query.get(name) || fields.get(name)?.at(-1)
    if (value !== undefined && value !== "") values[name] = value
  }
  // Newer clients send a list of languages: a list of one language means that language.
  const [language = "", ...others] = fields.get("languages[]") ?? []
  if (language !== "" && others.length === 0) values.language ??= language
  const parameters = yield* Effect.mapError(decodeParameters(values), invalidRequestOf)
  const granularities = granularityNames.flatMap((name) => [
    ...query.getAll(name),
    ...(fields.get(name) ?? []),
  ])
  if (granularities.some((name) => name !== "word" && name !== "segment")) {
    return yield* new InvalidRequest({ field: "timestamp_granularities", problem: "must be word or segment" })
  }
  const keywords = yield* keywordsOf((name) => [...query.getAll(name), ...(fields.get(name) ?? [])])
  const included = includeNames.flatMap((name) => [...query.getAll(name), ...(fields.get(name) ?? [])])
  if (included.some((name) => name !== "logprobs")) {
    return yield* new InvalidRequest({ field: "include", problem: "must be logprobs" })
  }
  const asked = modeOf(parameters, Boolean(query.get("model")))
  if ("problem" in asked) return yield* new InvalidRequest({ field: "stream", problem: asked.problem })
  const { mode } = asked
  const logprobs = included.length > 0
  if (logprobs && mode === "job") {
    return yield* new InvalidRequest({ field: "include", problem: "is not for jobs: add sync or stream" })
  }
  if (logprobs && mode === "sync" && (parameters.response_format ?? "json") !== "json") {
    return yield* new InvalidRequest({ field: "include", problem: "is for response_format json only" })
  }
  return { parameters, granularities: [...new Set(granularities)], keywords, logprobs, mode }
})

const noFields: Fields = new Map()

/**
 * Everything that can be refused without the body is refused before it: 100 MB take long on a mobile network, and should
 * not be sent in vain.
 */
export const checkBeforeUpload = Effect.fnUntraced(function* (query: URLSearchParams) {
  const { mode, parameters } = yield* parametersOf(query, noFields)
  const { model, language } = parameters
  const found = model === undefined ? undefined : yield* findModel(model, "transcription")
  if (found !== undefined) {
    yield* checkLanguage(found, language)
    yield* checkPunctuation(found.entry, punctuationOf(parameters), language)
  }
  const { orgId } = yield* Effect.tap(Caller, (caller) =>
    Effect.scoped(Effect.flatMap(UsageLedger, (ledger) => ledger.reserve(caller, 0))),
  )
  yield* (yield* Drain).admit(Effect.void)
  if (found !== undefined && mode === "job") yield* (yield* TranscriptionJobs).admit(orgId, found.entry.id)
})

export const optionsOf = (
  {
    granularities,
    keywords,
    parameters,
  }: {
    readonly parameters: TranscriptionParameters
    readonly granularities: ReadonlyArray<string>
    readonly keywords: ReadonlyArray<string>
  },
  entry: ModelEntry,
): JobOptions => ({
  language: parameters.language ?? entry.transcription?.defaultLanguage ?? null,
  prompt: parameters.prompt ?? "",
  temperature: Number(parameters.temperature ?? 0),
  punctuation: punctuationOf(parameters) ?? null,
  format: parameters.response_format ?? "json",
  granularities,
  ...(keywords.length === 0 ? {} : { keywords }),
})
