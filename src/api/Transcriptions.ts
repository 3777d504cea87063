// /v1/audio/transcriptions: POST in its three modes, GET to poll a job, DELETE to cancel one.
import { Effect, Schema } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { InvalidRequest } from "#domain/Errors.ts"
import type { ModelEntry } from "#domain/Model.ts"
import { render, type Transcript } from "#domain/Transcript.ts"
import { modeOf, punctuationOf, TranscriptionParameters } from "#domain/Transcription.ts"
import type { JobOptions } from "#store/Jobs.ts"
import { Caller } from "./Authentication.ts"
import { streamError } from "./ErrorBody.ts"
import { invalidRequestOf } from "./JsonBody.ts"
import { sinkResponse } from "./SinkBody.ts"
import { doneEvent, event } from "./TextStream.ts"
import { TranscriptionJobs } from "./TranscriptionJobs.ts"
import { runTranscription, transcriptionModel } from "./TranscriptionRun.ts"
import { readUpload, type Upload } from "./TranscriptionUpload.ts"

/** The contract's pace for polling. */
const pollIntervalMs = 500

const queryOf = (request: HttpServerRequest.HttpServerRequest) =>
  new URL(request.url, "http://edge").searchParams

const decodeParameters = Schema.decodeUnknownEffect(TranscriptionParameters)

/** Form fields that stand in for a query parameter that is not set; all of them, the specification's four included. */
const formFallbacks = [
  "model",
  "language",
  "response_format",
  "temperature",
  "prompt",
  "punctuation",
  "stream",
  "sync",
] as const

const granularityNames = ["timestamp_granularities[]", "timestamp_granularities"]

/** Query over form, decoded. */
const parametersOf = Effect.fnUntraced(function* (query: URLSearchParams, fields: Upload["fields"]) {
  const values: Record<string, string> = {}
  for (const name of formFallbacks) {
    const value = query.get(name) ?? fields.get(name)?.at(-1)
    if (value !== undefined && value !== "") values[name] = value
  }
  const parameters = yield* Effect.mapError(decodeParameters(values), invalidRequestOf)
  const granularities = granularityNames.flatMap((name) => [
    ...query.getAll(name),
    ...(fields.get(name) ?? []),
  ])
  const unknown = granularities.find((name) => name !== "word" && name !== "segment")
  if (unknown !== undefined) {
    return yield* new InvalidRequest({ field: "timestamp_granularities", problem: "must be word or segment" })
  }
  const asked = modeOf(parameters, query.has("model"))
  if ("problem" in asked) return yield* new InvalidRequest({ field: "stream", problem: asked.problem })
  return { parameters, granularities, mode: asked.mode }
})

const optionsOf = (
  parameters: TranscriptionParameters,
  granularities: ReadonlyArray<string>,
  entry: ModelEntry,
): JobOptions => ({
  language: parameters.language ?? entry.transcription?.defaultLanguage ?? null,
  prompt: parameters.prompt ?? "",
  temperature: Number(parameters.temperature ?? 0),
  punctuation: punctuationOf(parameters) ?? null,
  format: parameters.response_format ?? "json",
  granularities,
})

const toRun = ({ granularities, language, prompt, punctuation, temperature }: JobOptions) => ({
  language: language ?? undefined,
  prompt,
  punctuation: punctuation ?? undefined,
  temperature,
  words: granularities.includes("word"),
})

const replyOf = (transcript: Transcript, options: JobOptions) => {
  const rendered = render(transcript, options.format, options.granularities)
  return "json" in rendered
    ? HttpServerResponse.jsonUnsafe(rendered.json)
    : HttpServerResponse.text(rendered.text, { contentType: rendered.contentType })
}

const streamed = Effect.fnUntraced(function* (upload: Upload, entry: ModelEntry, options: JobOptions) {
  const principal = yield* Caller
  const services = yield* Effect.context<Effect.Services<ReturnType<typeof runTranscription>>>()
  // The first segment decides whether this is a stream at all: what is refused before it is an ordinary error.
  return sinkResponse(
    (sink) =>
      Effect.gen(function* () {
        let said = ""
        const transcript = yield* runTranscription({
          principal,
          entry,
          path: upload.path,
          options: toRun(options),
          background: false,
          onSegment: ({ text }) => {
            const delta = said === "" ? text.trimStart() : text
            if (delta === "") return
            said += delta
            sink.write(event({ type: "transcript.text.delta", delta }))
          },
        })
        const { duration, language, text } = transcript
        sink.write(event({ type: "transcript.text.done", text, duration, language }) + doneEvent)
      }).pipe(
        Effect.scoped,
        Effect.provideContext(services),
        Effect.catch((error) =>
          Effect.sync(() => {
            sink.write(event({ type: "error", error: streamError(error).message }) + doneEvent)
          }),
        ),
      ),
    { contentType: "text/event-stream; charset=utf-8", headers: { "cache-control": "no-cache" } },
  )
})

export const transcribe = Effect.fn("Transcriptions.create")(function* (
  request: HttpServerRequest.HttpServerRequest,
) {
  const query = queryOf(request)
  const upload = yield* readUpload(request)
  const { granularities, mode, parameters } = yield* parametersOf(query, upload.fields)
  const entry = yield* transcriptionModel(parameters.model)
  const options = optionsOf(parameters, granularities, entry)
  const caller = yield* Caller
  switch (mode) {
    case "sync": {
      const transcript = yield* runTranscription({
        principal: caller,
        entry,
        path: upload.path,
        options: toRun(options),
        background: false,
        onSegment: () => {},
      })
      return replyOf(transcript, options)
    }
    case "stream":
      return yield* streamed(upload, entry, options)
    case "job": {
      const jobs = yield* TranscriptionJobs
      const job_id = yield* jobs.submit({
        orgId: caller.orgId,
        keyId: caller.keyId,
        model: entry.id,
        options,
        uploadPath: upload.path,
      })
      upload.keep()
      return HttpServerResponse.jsonUnsafe(
        { job_id, status: "accepted", poll_url: `/v1/audio/transcriptions?job_id=${job_id}` },
        { status: 202 },
      )
    }
  }
})

const jobIdOf = (request: HttpServerRequest.HttpServerRequest) => {
  const jobId = queryOf(request).get("job_id")
  return jobId === null || jobId === ""
    ? Effect.fail(new InvalidRequest({ field: "job_id", problem: "is required" }))
    : Effect.succeed(jobId)
}

/** A plain-text format cannot carry fields, so a poll wraps it: `text` is then the whole formatted body. */
const completed = (transcript: Transcript, options: JobOptions): object => {
  const rendered = render(transcript, options.format, options.granularities)
  return "json" in rendered ? rendered.json : { text: rendered.text }
}

export const pollTranscription = Effect.fn("Transcriptions.poll")(function* (
  request: HttpServerRequest.HttpServerRequest,
) {
  const jobId = yield* jobIdOf(request)
  const job = yield* (yield* TranscriptionJobs).find((yield* Caller).orgId, jobId)
  const head = { job_id: job.id, status: job.status }
  const note = job.note === undefined ? {} : { detail: job.note }
  switch (job.status) {
    case "accepted":
    case "processing":
      return HttpServerResponse.jsonUnsafe(
        { ...head, poll_interval_ms: pollIntervalMs, ...note },
        { status: 202 },
      )
    case "completed":
      return HttpServerResponse.jsonUnsafe({ ...completed(job.transcript!, job.options), ...head })
    case "failed":
    case "cancelled":
      return HttpServerResponse.jsonUnsafe(
        { detail: job.note ?? `The job was ${job.status}`, ...head },
        { status: 400 },
      )
  }
})

export const cancelTranscription = Effect.fn("Transcriptions.cancel")(function* (
  request: HttpServerRequest.HttpServerRequest,
) {
  const jobId = yield* jobIdOf(request)
  const status = yield* (yield* TranscriptionJobs).cancel((yield* Caller).orgId, jobId)
  return HttpServerResponse.jsonUnsafe({ job_id: jobId, status })
})
