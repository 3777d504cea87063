// Failures of decoding, encoding and fetching audio. `detail` is a sentence for the client and never holds content or
// paths; status and body are decided elsewhere.
import { Schema } from "effect"

/** The sent bytes cannot be used as audio, or as a picture. A retry fails as well. */
export class AudioRejected extends Schema.TaggedError<AudioRejected>()("AudioRejected", {
  reason: Schema.Literals([
    /** Empty, text, a picture, or a container that is not supported. */
    "NotAudio",
    /** A known container without sound. */
    "NoAudioTrack",
    "UnsupportedCodec",
    /** A sample rate or channel count outside the limits. */
    "UnsupportedLayout",
    /** More seconds of audio than the limit. */
    "TooLong",
    /** Decoding took more CPU time or memory than the limit. */
    "TooCostly",
    /** A valid container and codec without a single sample. */
    "Empty",
    /** A picture file that is damaged, too large, or none. */
    "BadPicture",
  ]),
  detail: Schema.String,
}) {}

/**
 * The decoder failed independently of the file. `Busy` passes; after the other reasons the next request gets a new
 * decoder. After `Preempted` the same decode may be resumed at once: the process serves another user's file meanwhile.
 * `Absent`: this machine has no decoder; `detail` says what to install.
 */
export class DecoderFailed extends Schema.TaggedError<DecoderFailed>()("DecoderFailed", {
  reason: Schema.Literals(["Busy", "Died", "Hung", "Protocol", "Spool", "Closed", "Preempted", "Absent"]),
  detail: Schema.String,
}) {}

/** An encoder failed. `Overrun`: samples were pushed far past `ready`. */
export class CodecFailed extends Schema.TaggedError<CodecFailed>()("CodecFailed", {
  reason: Schema.Literals(["Busy", "WorkerDied", "EncodeFailed", "Overrun", "TooLong", "Closed"]),
  detail: Schema.String,
}) {}
