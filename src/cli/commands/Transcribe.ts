// `edgewise transcribe FILE`: a file transcribed by a running node. As a job, so that neither a long file nor a restart
// of the node breaks it off; with --stream its words as they are heard.
import { randomUUID } from "node:crypto"
import { statSync } from "node:fs"
import { Console, Effect, Option, Result, Scope } from "effect"
import { Argument, CliError, Command, Flag } from "effect/cli"
import { type TranscriptFormat, transcriptFormats } from "#domain/audio/Transcript.ts"
import { eventReader } from "../shared/EventStream.ts"
import {
  eachChunk,
  expectStatus,
  interrupted,
  type NodeAccess,
  NodeRefused,
  nodeAccess,
  nodeFlags,
  send,
  textOf,
} from "../shared/NodeClient.ts"
import { type ProgressLine, progressLine } from "../shared/ProgressLine.ts"

const endpoint = "/v1/audio/transcriptions"

const local = (detail: string) => new NodeRefused({ status: 0, detail })

const sizeOf = (path: string) =>
  Effect.try({
    try: () => statSync(path).size,
    catch: (cause) => local(cause instanceof Error ? cause.message : String(cause)),
  })

/** Sends the file as the only part of a form; its name on this machine is nobody's business. */
const upload = Effect.fnUntraced(function* (
  access: NodeAccess,
  file: string,
  query: URLSearchParams,
  progress: ProgressLine,
) {
  const boundary = randomUUID()
  const before = `--${boundary}\r\ncontent-disposition: form-data; name="file"; filename="audio"\r\n\r\n`
  const after = `\r\n--${boundary}--\r\n`
  const sizeBytes = (yield* sizeOf(file)) + before.length + after.length
  return yield* send(access, {
    method: "POST",
    target: `${endpoint}?${query}`,
    headers: { "content-type": `multipart/form-data; boundary=${boundary}` },
    body: { pieces: [before, { path: file }, after], sizeBytes },
    onSent: (sentBytes) =>
      sentBytes < sizeBytes
        ? progress.show("sending", sentBytes / sizeBytes)
        : progress.show("transcribing", undefined),
  })
})

interface JobState {
  readonly job_id: string
  readonly status: string
  readonly poll_interval_ms?: number
  readonly detail?: string
}

const parse = <A>(text: string): Effect.Effect<A, NodeRefused> =>
  Effect.try({ try: () => JSON.parse(text) as A, catch: () => local("the node's answer is not JSON") })

/** One look at a job, on a connection of its own: the node may have been started anew in between. */
const look = (access: NodeAccess, jobId: string, method: "GET" | "DELETE") =>
  Effect.gen(function* () {
    const incoming = yield* send(access, { method, target: `${endpoint}?job_id=${jobId}` })
    yield* expectStatus(incoming, 200, 202)
    return {
      done: incoming.statusCode === 200,
      body: yield* Effect.flatMap(textOf(incoming), parse<JobState>),
    }
  }).pipe(Effect.scoped)

/** Looks that may fail in a row while a node restarts: half a minute. A guess. */
const patience = 60
const pollMs = 500

const result = Effect.fnUntraced(function* (access: NodeAccess, jobId: string, progress: ProgressLine) {
  let failures = 0
  for (;;) {
    const seen = yield* Effect.result(look(access, jobId, "GET"))
    if (Result.isFailure(seen)) {
      // Status 0: it was not reached. Anything it says itself is final.
      if (seen.failure.status !== 0 || ++failures > patience) return yield* seen.failure
    } else {
      failures = 0
      if (seen.success.done) return seen.success.body
      progress.show(seen.success.body.detail ?? "transcribing", undefined)
    }
    yield* Effect.sleep(pollMs)
  }
})

/** What the synchronous answer would have been: the poll wraps texts and adds two fields. */
const rendered = (body: JobState, format: TranscriptFormat): string => {
  const { job_id: _job, status: _status, ...transcript } = body as JobState & { readonly text?: string }
  return format === "json" || format === "verbose_json"
    ? `${JSON.stringify(transcript, null, 2)}\n`
    : (transcript.text ?? "")
}

const asJob = Effect.fnUntraced(function* (
  access: NodeAccess,
  file: string,
  query: URLSearchParams,
  format: TranscriptFormat,
) {
  const progress = yield* progressLine()
  query.set("response_format", format)
  const accepted = yield* Effect.scoped(
    Effect.gen(function* () {
      const incoming = yield* upload(access, file, query, progress)
      yield* expectStatus(incoming, 202)
      return yield* Effect.flatMap(textOf(incoming), parse<JobState>)
    }),
  )
  const body = yield* result(access, accepted.job_id, progress).pipe(
    // Who breaks off does not want to pay for the rest.
    Effect.onInterrupt(() => Effect.ignore(look(access, accepted.job_id, "DELETE"))),
  )
  return rendered(body, format)
})

interface StreamEvent {
  readonly type: string
  readonly delta?: string
  readonly error?: string
}

/** Prints the words as they come. */
const asStream = Effect.fnUntraced(function* (access: NodeAccess, file: string, query: URLSearchParams) {
  query.set("stream", "true")
  const whole = yield* Effect.scope
  // The line of progress ends with the upload: it would cut through the words.
  const incoming = yield* Effect.scoped(
    Effect.flatMap(progressLine(), (progress) => Scope.provide(upload(access, file, query, progress), whole)),
  )
  yield* expectStatus(incoming, 200)
  let failure: string | undefined
  const onEvent = ({ delta, error }: StreamEvent) => {
    if (delta !== undefined) process.stdout.write(delta)
    failure ??= error
  }
  yield* eachChunk(
    incoming,
    eventReader((json) => onEvent(JSON.parse(json) as StreamEvent)),
  )
  process.stdout.write("\n")
  if (failure !== undefined) return yield* local(failure)
})

export const transcribe = Command.make(
  "transcribe",
  {
    file: Argument.String("FILE").pipe(Argument.withDescription("MP3, WAV, M4A, OGG, FLAC or WebM audio")),
    model: Flag.String("model").pipe(
      Flag.withMetavar("ID"),
      Flag.withDescription("Model that listens"),
      Flag.withDefault("stt-large-v3-turbo"),
    ),
    language: Flag.String("language").pipe(
      Flag.withMetavar("CODE"),
      Flag.withDescription("Language spoken, e.g. en; found out where the model can"),
      Flag.optional,
    ),
    format: Flag.Literals("format", transcriptFormats).pipe(
      Flag.withDescription("What is printed"),
      Flag.withDefault("text"),
    ),
    stream: Flag.Boolean("stream").pipe(
      Flag.withDescription("Print words as they are heard"),
      Flag.withDefault(false),
    ),
    ...nodeFlags,
  },
  Effect.fn(function* ({ file, format, key, language, model, stream, url }) {
    if (stream && format !== "text") {
      const error = new CliError.ValidationError({
        message: "--stream prints text: it takes no other --format",
      })
      return yield* new CliError.ShowHelp({ commandPath: ["edgewise", "transcribe"], errors: [error] })
    }
    const access = yield* nodeAccess({ url, key })
    const query = new URLSearchParams({
      model,
      ...Option.match(language, { onNone: () => ({}), onSome: (code) => ({ language: code }) }),
    })
    const work: Effect.Effect<string | undefined, NodeRefused, Scope.Scope> = stream
      ? asStream(access, file, query)
      : asJob(access, file, query, format)
    const text = yield* Effect.scoped(Effect.raceFirst(work, interrupted))
    if (typeof text === "string") yield* Console.log(text.replace(/\n$/, ""))
  }),
).pipe(Command.withDescription("Transcribe a file on a running node"))
