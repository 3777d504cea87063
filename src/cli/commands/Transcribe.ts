// `edgewise transcribe FILE`: has a running node transcribe a file. By default as a job, which survives long files and
// a restart of the node; with --stream the text is printed as it is transcribed.
import { randomUUID } from "node:crypto"
import { Console, Effect, Option, Result, Scope } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { type TranscriptFormat, transcriptFormats } from "#domain/audio/Transcript.ts"
import { readableSize } from "../shared/FileErrors.ts"
import { languageFlag, modelFlag } from "../shared/ModelOptions.ts"
import {
  eachEvent,
  expectStatus,
  interrupted,
  localFailure,
  type NodeAccess,
  type NodeRefused,
  nodeAccess,
  nodeFlags,
  send,
  textOf,
} from "../shared/NodeClient.ts"
import { switchFlag, visible, wrongUsage } from "../shared/Output.ts"
import { type ProgressLine, progressLine } from "../shared/ProgressLine.ts"

const endpoint = "/v1/audio/transcriptions"

const sizeOf = (path: string) =>
  Effect.try({
    try: () => readableSize(path),
    catch: localFailure,
  })

/** Sends the file as the only part of a form. Its name on this machine is not sent. */
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
  readonly detail?: string
}

const parse = <A>(text: string): Effect.Effect<A, NodeRefused> =>
  Effect.try({ try: () => JSON.parse(text) as A, catch: () => localFailure("the node's answer is not JSON") })

/** Polls or cancels a job, on a new connection: the node may have been restarted since the last poll. */
const requestJob = (access: NodeAccess, jobId: string, method: "GET" | "DELETE") =>
  Effect.gen(function* () {
    const incoming = yield* send(access, { method, target: `${endpoint}?job_id=${jobId}` })
    yield* expectStatus(incoming, 200, 202)
    return {
      done: incoming.statusCode === 200,
      body: yield* Effect.flatMap(textOf(incoming), parse<JobState>),
    }
  }).pipe(Effect.scoped)

/** Consecutive polls that may fail while a node restarts: half a minute. A guess. */
const maxFailedPolls = 60
const pollMs = 500

const result = Effect.fnUntraced(function* (access: NodeAccess, jobId: string, progress: ProgressLine) {
  let failures = 0
  for (;;) {
    const seen = yield* Effect.result(requestJob(access, jobId, "GET"))
    if (Result.isFailure(seen)) {
      // Status 0: the node was not reached. Any refusal of the node is final.
      if (seen.failure.status !== 0 || ++failures > maxFailedPolls) return yield* seen.failure
    } else {
      failures = 0
      if (seen.success.done) return seen.success.body
      progress.show(seen.success.body.detail ?? "transcribing", undefined)
    }
    yield* Effect.sleep(pollMs)
  }
})

/** Converts the poll's reply to that of a synchronous request: the poll wraps texts and adds two fields. */
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
    // An interrupted command should not pay for the rest.
    Effect.onInterrupt(() => Effect.ignore(requestJob(access, accepted.job_id, "DELETE"))),
  )
  return rendered(body, format)
})

interface StreamEvent {
  readonly type: string
  readonly delta?: string
  readonly error?: string
}

/** Prints the text as it arrives. */
const asStream = Effect.fnUntraced(function* (access: NodeAccess, file: string, query: URLSearchParams) {
  query.set("stream", "true")
  const whole = yield* Effect.scope
  // The progress line ends with the upload; otherwise it would overwrite the text.
  const incoming = yield* Effect.scoped(
    Effect.flatMap(progressLine(), (progress) => Scope.provide(upload(access, file, query, progress), whole)),
  )
  yield* expectStatus(incoming, 200)
  let failure: string | undefined
  const onEvent = ({ delta, error }: StreamEvent) => {
    if (delta !== undefined) process.stdout.write(visible(delta))
    failure ??= error
  }
  yield* eachEvent(incoming, (json) => onEvent(JSON.parse(json) as StreamEvent))
  process.stdout.write("\n")
  if (failure !== undefined) return yield* localFailure(failure)
})

export const transcribe = Command.make(
  "transcribe",
  {
    file: Argument.String("FILE").pipe(Argument.withDescription("MP3, WAV, M4A, OGG, FLAC or WebM audio")),
    model: modelFlag("Model that transcribes", "stt-large-v3-turbo"),
    language: languageFlag("Spoken language, e.g. en; default: detected, if the model can"),
    format: Flag.Literals("format", transcriptFormats).pipe(
      Flag.withDescription("Output format; default: text"),
      Flag.withDefault("text"),
    ),
    stream: switchFlag("stream", "Print the text while it is transcribed"),
    ...nodeFlags,
  },
  Effect.fn(function* ({ file, format, key, language, model, stream, url }) {
    if (stream && format !== "text") {
      return yield* wrongUsage(
        ["transcribe"],
        "--stream prints text only: it cannot be combined with another --format",
      )
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
