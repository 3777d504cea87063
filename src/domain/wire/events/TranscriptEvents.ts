// Replies and events of transcription: of files (protocol 9.3 to 9.8) and of live sessions (protocol 10.3). Schemas only.
import { Schema } from "effect"
import { Timing } from "./TextEvents.ts"

const Segment = Schema.Struct({
  id: Schema.Int,
  seek: Schema.Int,
  start: Schema.Finite,
  end: Schema.Finite,
  text: Schema.String,
  tokens: Schema.Array(Schema.Int),
  temperature: Schema.Finite,
  avg_logprob: Schema.Finite,
  compression_ratio: Schema.Finite,
  no_speech_prob: Schema.Finite,
})
const Word = Schema.Struct({ word: Schema.String, start: Schema.Finite, end: Schema.Finite })

/** The tokens of a text. */
export const Logprobs = Schema.optionalKey(
  Schema.Array(
    Schema.Struct({ token: Schema.String, bytes: Schema.Array(Schema.Int), logprob: Schema.Finite }),
  ),
)

/** Response format `json`. `logprobs` with `include[]=logprobs`. */
export const TranscriptText = Schema.Struct({ text: Schema.String, logprobs: Logprobs })

/** Response format `verbose_json`. */
export const VerboseTranscript = Schema.Struct({
  task: Schema.Literals(["transcribe", "translate"]),
  language: Schema.String,
  duration: Schema.Finite,
  text: Schema.String,
  segments: Schema.Array(Segment),
  words: Schema.optionalKey(Schema.Array(Word)),
})

const jobId = Schema.String

export const JobAccepted = Schema.Struct({
  job_id: jobId,
  status: Schema.Literal("accepted"),
  poll_url: Schema.String,
})

export const JobWaits = Schema.Struct({
  job_id: jobId,
  status: Schema.Literals(["accepted", "processing"]),
  poll_interval_ms: Schema.Int,
  /** What it waits for. */
  detail: Schema.optionalKey(Schema.String),
})

const completed = { job_id: jobId, status: Schema.Literal("completed") }
/** The transcript in the job's format. For `text`, `srt` and `vtt` the formatted text is the field `text`. */
export const JobCompleted = Schema.Struct({ ...TranscriptText.fields, ...completed })
export const JobCompletedVerbose = Schema.Struct({ ...VerboseTranscript.fields, ...completed })

export const JobEnded = Schema.Struct({
  detail: Schema.String,
  job_id: jobId,
  status: Schema.Literals(["failed", "cancelled"]),
})

export const JobCancelled = Schema.Struct({
  job_id: jobId,
  /** `cancelled`, or the status of a job that had ended before. */
  status: Schema.Literals(["accepted", "processing", "completed", "failed", "cancelled"]),
})

/** The last event of a stream or a live session that failed. */
const FailureEvent = Schema.Struct({ type: Schema.Literal("error"), error: Schema.String })

const done = {
  type: Schema.Literal("transcript.text.done"),
  text: Schema.String,
  duration: Schema.Finite,
  language: Schema.String,
}

/** Events of `stream=true` (protocol 9.5). */
export const TranscriptEvent = Schema.Union([
  Schema.Struct({ type: Schema.Literal("transcript.text.delta"), delta: Schema.String, logprobs: Logprobs }),
  Schema.Struct({ ...done, logprobs: Logprobs, timing: Schema.optionalKey(Timing) }),
  FailureEvent,
])

/** Text frames of the client of a live session; binary frames are samples. */
export const StopFrame = Schema.Struct({ type: Schema.Literal("stop") })

/** Events of a live session (protocol 10.3, 10.5). */
export const LiveEvent = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("transcript.text.delta"),
    delta: Schema.String,
    rev: Schema.Int,
    op: Schema.Literals(["append", "replace"]),
    stable_chars: Schema.Int,
    audio_ms: Schema.Int,
  }),
  Schema.Struct(done),
  Schema.Struct({
    type: Schema.Literal("warning"),
    warning: Schema.Literal("session limit"),
    remaining_ms: Schema.Finite,
  }),
  Schema.Struct({ type: Schema.Literals(["speech_started", "speech_stopped"]), audio_ms: Schema.Finite }),
  FailureEvent,
])
