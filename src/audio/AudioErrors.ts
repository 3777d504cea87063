// The failures of the audio room, with facts. Called by whoever answers a client or ends a job; how they read on
// the wire is decided elsewhere. `detail` is a sentence fit for the client and never carries content or paths.
import { Schema } from "effect"

/** The bytes that were sent are not audio that can be used: the sender's fault, and it stays so on a retry. */
export class AudioRejected extends Schema.TaggedError<AudioRejected>()("AudioRejected", {
  reason: Schema.Literals([
    /** Empty, text, a picture, or a container that is not on the list. */
    "NotAudio",
    /** A known container with no sound in it. */
    "NoAudioTrack",
    "UnsupportedCodec",
    /** A sample rate or channel count out of bounds. */
    "UnsupportedLayout",
    /** More seconds of audio than the caller allows. */
    "TooLong",
    /** Decoding took more CPU time or memory than the caller allows. */
    "TooCostly",
    /** A container and codec that are fine, and not one sample. */
    "Empty",
  ]),
  detail: Schema.String,
}) {}

/**
 * The decoder failed, whatever was sent. `Busy` passes; after the others the next request finds a new decoder. After
 * `Preempted` the same decode may be resumed at once: another user's file has the process meanwhile.
 */
export class DecoderFailed extends Schema.TaggedError<DecoderFailed>()("DecoderFailed", {
  reason: Schema.Literals(["Busy", "Died", "Hung", "Protocol", "Spool", "Closed", "Preempted"]),
  detail: Schema.String,
}) {}

/** An encoder failed. `Overrun`: samples were pushed far past `ready`. */
export class CodecFailed extends Schema.TaggedError<CodecFailed>()("CodecFailed", {
  reason: Schema.Literals(["Busy", "WorkerDied", "EncodeFailed", "Overrun", "TooLong", "Closed"]),
  detail: Schema.String,
}) {}

/** A reference clip could not be fetched from the address a client gave. */
export class VoiceUrlRefused extends Schema.TaggedError<VoiceUrlRefused>()("VoiceUrlRefused", {
  reason: Schema.Literals([
    "BadUrl",
    "NotPublic",
    "NotResolved",
    "Redirects",
    "Status",
    "Encoding",
    "TooLarge",
    /** Far too many small pieces. */
    "Scattered",
    "TimedOut",
    "Failed",
    "Busy",
  ]),
  detail: Schema.String,
}) {}
