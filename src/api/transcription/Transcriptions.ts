// /v1/audio/transcriptions: POST in its three modes, GET to poll a job, DELETE to cancel one. /v1/audio/translations: the same file with its
// text in English, always answered at once.
import { Deferred, Effect, Exit, Fiber } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { Drain } from "#actors/Drain.ts"
import type { ModelHandle } from "#actors/model/ModelHandle.ts"
import { Decoder } from "#audio/Decoder.ts"
import {
  logprobsOf,
  render,
  type Transcript,
  type TranscriptSegment,
  type TranscriptTask,
} from "#domain/audio/Transcript.ts"
import { InvalidRequest, Unauthorized } from "#domain/wire/Errors.ts"
import { isNodeFault } from "#domain/wire/Failures.ts"
import { punctuationOf, wantsTiming } from "#domain/wire/Transcription.ts"
import { streamError } from "#http/ErrorBody.ts"
import { CurrentRequest } from "#http/RequestContext.ts"
import { sinkResponse } from "#http/SinkBody.ts"
import { Caller } from "#services/Caller.ts"
import { TranscriptionJobs } from "#services/jobs/TranscriptionJobs.ts"
import { findModel } from "#services/ModelLookup.ts"
import { noDecoder } from "#services/TranscriptionAudio.ts"
import {
  checkLanguage,
  checkPunctuation,
  checkTranslates,
  runOptions,
  runTranscription,
  type TranscriptionRun,
} from "#services/TranscriptionRun.ts"
import { readUpload, type Upload } from "#services/TranscriptionUpload.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import type { JobOptions } from "#store/ledger/JobRows.ts"
import { digestOfUpload, idempotent, isAnswered } from "../access/Idempotency.ts"
import { doneEvent, event, eventStreamHeaders } from "../text/TextStream.ts"
import { checkBeforeUpload, optionsOf, parametersOf, queryOf } from "./TranscriptionRequest.ts"

/** How often a client should poll (protocol 9.7). */
const pollIntervalMs = 500

/** What a client of `sync` or `stream` may ask for beside the options of a job. */
interface Extras {
  readonly task: TranscriptTask
  readonly logprobs: boolean
  readonly withTiming: boolean
}

const replyOf = (transcript: Transcript, options: JobOptions, { logprobs, task }: Extras) => {
  const rendered = render(transcript, options.format, options.granularities, task, logprobs)
  return "json" in rendered
    ? HttpServerResponse.jsonUnsafe(rendered.json)
    : HttpServerResponse.text(rendered.text, { contentType: rendered.contentType })
}

/**
 * A run whose client waits for the answer: draining waits for it, and it ends when its key is revoked.
 * @param delivers whether the client receives each window as it is transcribed
 */
const interactive = Effect.fnUntraced(function* (
  upload: Upload,
  model: ModelHandle<"transcription">,
  options: JobOptions,
  hooks: Pick<TranscriptionRun<never>, "onStarted" | "onSegment">,
  delivers: boolean,
  { logprobs, task }: Extras,
) {
  const principal = yield* Caller
  const revoked = Effect.andThen(
    (yield* Accounts).revoked(principal),
    Effect.fail(new Unauthorized({ reason: "invalid-key" })),
  )
  return yield* runTranscription({
    ...hooks,
    principal,
    model,
    path: upload.path,
    options: {
      ...runOptions(options),
      ...(logprobs ? { logprobs } : {}),
      ...(task === "translate" ? { translate: true } : {}),
    },
    background: false,
    // A client that disconnects pays for what was transcribed until then, and so does one that received it window by
    // window. If the node fails before anything was delivered, the request is not charged.
    charged: (exit) => {
      const error = Exit.findErrorOption(exit)
      if (error._tag === "None") return Exit.hasInterrupts(exit)
      return delivers || !isNodeFault(error.value)
    },
  }).pipe(Effect.raceFirst(revoked), (yield* Drain).admit)
})

/** Answers once the engine has accepted the first window: refusals until then are ordinary errors. */
const streamed = Effect.fnUntraced(function* (
  upload: Upload,
  model: ModelHandle<"transcription">,
  options: JobOptions,
  extras: Extras,
) {
  const notes = yield* CurrentRequest
  const started = Deferred.makeUnsafe<void>()
  const early: Array<TranscriptSegment> = []
  let reader = (segment: TranscriptSegment): void => void early.push(segment)
  const hooks = {
    onStarted: () => Deferred.doneUnsafe(started, Effect.void),
    onSegment: (segment: TranscriptSegment) => reader(segment),
  }
  const run = interactive(upload, model, options, hooks, true, extras)
  const fiber = yield* Effect.forkScoped(run, { startImmediately: true })
  yield* Effect.raceFirst(Deferred.await(started), Effect.asVoid(Fiber.join(fiber)))
  return sinkResponse(
    (sink) =>
      Effect.gen(function* () {
        let silent = true
        reader = (segment) => {
          const { text } = segment
          const delta = silent ? text.trimStart() : text
          if (delta === "") return
          silent = false
          const logprobs = extras.logprobs ? { logprobs: logprobsOf([segment]) } : {}
          sink.write(event({ type: "transcript.text.delta", delta, ...logprobs }))
        }
        for (const segment of early) reader(segment)
        const { duration, language, segments, text } = yield* Fiber.join(fiber)
        const timing = extras.withTiming ? { timing: notes.timing() } : {}
        const logprobs = extras.logprobs ? { logprobs: logprobsOf(segments) } : {}
        const done = { type: "transcript.text.done", text, duration, language, ...logprobs, ...timing }
        sink.write(event(done) + doneEvent)
      }).pipe(
        Effect.catch((error) =>
          Effect.sync(() => {
            notes.failed = true
            if (isNodeFault(error)) notes.breaksOff(error)
            sink.write(event({ type: "error", error: streamError(error).message }) + doneEvent)
          }),
        ),
      ),
    { contentType: "text/event-stream; charset=utf-8", headers: eventStreamHeaders },
  )
})

const synchronous = Effect.fnUntraced(function* (
  upload: Upload,
  model: ModelHandle<"transcription">,
  options: JobOptions,
  extras: Extras,
) {
  const run = interactive(upload, model, options, { onStarted: () => {}, onSegment: () => {} }, false, extras)
  return replyOf(yield* run, options, extras)
})

const accepted = Effect.fnUntraced(function* (
  upload: Upload,
  model: ModelHandle<"transcription">,
  options: JobOptions,
) {
  const { keyId, orgId } = yield* Caller
  const jobs = yield* TranscriptionJobs
  // Writing the row and passing on the file are one step, or a client that disconnects in between would remove the
  // file.
  const job_id = yield* Effect.uninterruptible(
    jobs.submit({ orgId, keyId, model: model.entry.id, options, uploadPath: upload.path }, upload.keep),
  )
  const notes = yield* CurrentRequest
  // Written when the job ends.
  notes.reserved({ receiptId: job_id, state: "open" })
  return HttpServerResponse.jsonUnsafe(
    { job_id, status: "accepted", poll_url: `/v1/audio/transcriptions?job_id=${job_id}` },
    { status: 202 },
  )
})

/** Reads the upload of a request that can be served: `what`, which is refused where there is no decoder. */
const received = Effect.fnUntraced(function* (
  request: HttpServerRequest.HttpServerRequest,
  query: URLSearchParams,
  what: string,
) {
  const decoder = yield* Decoder
  // A retry gets the stored answer and costs nothing, so it needs no money and no slot.
  if (!(yield* isAnswered(request))) {
    yield* checkBeforeUpload(query)
    yield* Effect.mapError(decoder.ready, () => noDecoder(what))
  }
  // Starting one takes 0.2 s, and so do most uploads.
  yield* decoder.warm
  return yield* readUpload(request)
})

const modes = { sync: synchronous, stream: streamed, job: accepted }

export const transcribe = Effect.fn("Transcriptions.create")(function* (
  request: HttpServerRequest.HttpServerRequest,
) {
  const query = queryOf(request)
  const upload = yield* received(request, query, "Transcription of a file")
  const asked = yield* parametersOf(query, upload.fields)
  const { logprobs, mode, parameters } = asked
  if (parameters.model === undefined) {
    return yield* new InvalidRequest({ field: "model", problem: "is required" })
  }
  const model = yield* findModel(parameters.model, "transcription")
  yield* checkLanguage(model, parameters.language)
  yield* checkPunctuation(model.entry, punctuationOf(parameters), parameters.language)
  const options = optionsOf(asked, model.entry)
  const answer = Effect.gen(function* () {
    const extras: Extras = { task: "transcribe", logprobs, withTiming: wantsTiming(parameters) }
    return yield* modes[mode](upload, model, options, extras)
  })
  return yield* idempotent(request, digestOfUpload(request, upload), answer)
})

/** Parameters of a transcription that a translation has not. */
const ofTranscriptions = ["punctuation", "stream"] as const

const refuseOfTranscriptions = (
  valueOf: (field: string) => string | null | undefined,
): Effect.Effect<void, InvalidRequest> => {
  const field = ofTranscriptions.find((name) => !/^(?:false|0)?$/i.test(valueOf(name) ?? ""))
  return field === undefined
    ? Effect.void
    : Effect.fail(new InvalidRequest({ field, problem: "is not a parameter of translations" }))
}

/** As OpenAI's endpoint: one answer, in one of the five formats. */
export const translate = Effect.fn("Translations.create")(function* (
  request: HttpServerRequest.HttpServerRequest,
) {
  const query = queryOf(request)
  yield* refuseOfTranscriptions((name) => query.get(name))
  for (const name of ofTranscriptions) query.delete(name)
  // The answer comes at once, as if the query said so.
  query.set("sync", "true")
  const upload = yield* received(request, query, "Translation of a file")
  const fields = new Map(upload.fields)
  yield* refuseOfTranscriptions((name) => fields.get(name)?.at(-1))
  for (const name of ofTranscriptions) fields.delete(name)
  const asked = yield* parametersOf(query, fields)
  const { logprobs, parameters } = asked
  if (parameters.model === undefined) {
    return yield* new InvalidRequest({ field: "model", problem: "is required" })
  }
  const model = yield* findModel(parameters.model, "transcription")
  yield* checkTranslates(model)
  yield* checkLanguage(model, parameters.language)
  const options = optionsOf(asked, model.entry)
  const answer = Effect.gen(function* () {
    const hooks = { onStarted: () => {}, onSegment: () => {} }
    const extras: Extras = { task: "translate", logprobs, withTiming: false }
    const transcript = yield* interactive(upload, model, options, hooks, false, extras)
    return replyOf({ ...transcript, language: "en" }, options, extras)
  })
  return yield* idempotent(request, digestOfUpload(request, upload), answer)
})

interface JobQuery {
  readonly job_id?: string
}

const jobIdOf = ({ job_id = "" }: JobQuery) =>
  job_id === ""
    ? Effect.fail(new InvalidRequest({ field: "job_id", problem: "is required" }))
    : Effect.succeed(job_id)

/** A plain-text format cannot carry fields, so a poll wraps it: `text` is then the whole formatted body. */
const completed = (transcript: Transcript, options: JobOptions) => {
  const rendered = render(transcript, options.format, options.granularities)
  return "json" in rendered ? rendered.json : { text: rendered.text }
}

export const pollTranscription = Effect.fn("Transcriptions.poll")(function* (query: JobQuery) {
  const jobId = yield* jobIdOf(query)
  const { id: job_id, ...job } = yield* (yield* TranscriptionJobs).find((yield* Caller).orgId, jobId)
  const { status } = job
  switch (status) {
    case "accepted":
    case "processing": {
      const note = job.note === undefined ? {} : { detail: job.note }
      return { job_id, status, poll_interval_ms: pollIntervalMs, ...note }
    }
    case "completed":
      // Not through its schema: the transcript of hours has thousands of segments, and JSON alone takes its time.
      return HttpServerResponse.jsonUnsafe({ ...completed(job.transcript!, job.options), job_id, status })
    case "failed":
    case "cancelled":
      return HttpServerResponse.jsonUnsafe(
        { detail: job.note ?? `The job was ${status}`, job_id, status },
        { status: 400 },
      )
  }
})

export const cancelTranscription = Effect.fn("Transcriptions.cancel")(function* (query: JobQuery) {
  const jobId = yield* jobIdOf(query)
  const status = yield* (yield* TranscriptionJobs).cancel((yield* Caller).orgId, jobId)
  return { job_id: jobId, status }
})
