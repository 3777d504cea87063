// A live session on its socket, in this product's own events: PCM and `stop` come in, captions go out, then one last
// event and a close code. The session is admitted before; knows no accounts.
import { Cause, Clock, Effect, Fiber } from "effect"
import { CloseEvent, type Reader, type SocketError, type Writer } from "effect/socket/Socket"
import { type LiveSession, remainingMs } from "#actors/live/LiveSession.ts"
import type { LiveError } from "#actors/live/SessionLease.ts"
import { speechWeights } from "#audio/SpeechWeights.ts"
import { bytesToS16, listenRateHz, samplesToBytes, samplesToSeconds } from "#domain/audio/Audio.ts"
import { deltaOf, type FinalResult, type LiveEnd } from "#domain/audio/LiveTranscript.ts"
import { type SpeechEvent, VoiceActivityDetector } from "#domain/audio/VoiceActivityDetector.ts"
import { monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { Signal } from "#domain/queues/Signal.ts"
import { StopFrame } from "#domain/wire/events/TranscriptEvents.ts"
import { detailOf } from "#http/ErrorBody.ts"
import { TextFrame } from "#http/SocketFrames.ts"
import { reportFailure } from "#services/AnswerFailures.ts"
import type { CredentialEnd } from "../access/CredentialEnd.ts"
import { decodeJson } from "../http/JsonBody.ts"
import type { SessionTrace } from "../tracing/SessionTrace.ts"
import { type SocketPace, sliceSeconds } from "./IntakePace.ts"

interface Conversation {
  readonly session: LiveSession<LiveError>
  /** The language reported if nothing was transcribed. */
  readonly language: string | undefined
  /** When audio is taken in. */
  readonly pace: SocketPace
  /** Whether the client requested events for start and end of speech. */
  readonly speechEvents: boolean
  /** Calls when the caller's credential ends; the returned function ends the watch. */
  readonly onCredentialEnd: (told: (end: CredentialEnd) => void) => () => void
  /** The session's trace, if traces are exported. */
  readonly trace?: SessionTrace | undefined
}

/** How a session ends on the wire: last events, then the close frame. */
interface Ending {
  readonly events: ReadonlyArray<object>
  readonly code: number
  readonly reason: string
}

const failure = (error: string, code: number, reason: string): Ending => ({
  events: [{ type: "error", error }],
  code,
  reason,
})

/** Close codes (protocol 16.1). */
const closeOf: Readonly<Record<LiveEnd, readonly [code: number, reason: string]>> = {
  stop: [1000, ""],
  limit: [4008, "session limit"],
  idle: [1000, "idle"],
  drain: [1001, "server is shutting down"],
}
/** A failure of this side. */
const failedCode = 1011

/** A session without audio that the client did not stop has an empty result, which is not sent. */
const endingOf = (
  { end, hypothesis }: FinalResult,
  session: LiveSession<LiveError>,
  language: string | undefined,
): Ending => {
  const [code, reason] = closeOf[end]
  const done = {
    type: "transcript.text.done",
    text: hypothesis.text,
    duration: samplesToSeconds(session.samples, listenRateHz),
    language: hypothesis.language ?? language ?? "en",
  }
  return { events: session.samples > 0 || end === "stop" ? [done] : [], code, reason }
}

// ---------------------------------------------------------------- frames in

/** First bytes of files that clients send by mistake: RIFF, Ogg, FLAC, MP3 with a tag, WebM. */
const fileMarks = ["RIFF", "OggS", "fLaC", "ID3", "\x1a\x45\xdf\xa3"]

const isFile = (frame: Uint8Array): boolean => {
  const start = Buffer.from(frame.subarray(0, 4)).toString("latin1")
  return fileMarks.some((mark) => start.startsWith(mark))
}

const decodeText = decodeJson(StopFrame)

/** Why a frame is not audio; undefined if it is. */
const flawOf = (session: LiveSession<LiveError>, frame: Uint8Array): Ending | undefined => {
  if (frame.length % 2 === 1) {
    return failure("frame: must be 16-bit PCM: an even number of bytes", 1003, "not 16-bit PCM")
  }
  if (session.samples === 0 && isFile(frame)) {
    return failure("frame: must be raw PCM, not a file", 1003, "not 16-bit PCM")
  }
  return undefined
}

/** Bytes of a frame that are processed in one tick: a frame of 4 MiB would hold the event loop for 10 ms and more. */
const sliceBytes = 256 * 1024
const bytesPerSecond = samplesToBytes(listenRateHz)
/** The same where speech is detected in them. */
const detectedBytes = bytesPerSecond * sliceSeconds

const notStop = failure('frame: must be {"type":"stop"}', 1003, "unknown message")

const takeText = (session: LiveSession<LiveError>, frame: string): Effect.Effect<Ending | undefined> =>
  Effect.match(decodeText(frame), {
    onSuccess: () => {
      session.stop("stop")
      return undefined
    },
    onFailure: () => notStop,
  })

/** Detected speech in a session's audio: the reader puts audio in, a fiber of its own sends events. */
class SpeechNews {
  readonly #detector = new VoiceActivityDetector(speechWeights)
  /** Bounded by the session's audio: speech starts and stops at most twice a second. */
  #events: Array<SpeechEvent> = []
  readonly #filled = new Signal()

  hear(frame: Uint8Array): void {
    const events = this.#detector.push(bytesToS16(frame))
    if (events.length === 0) return
    this.#events.push(...events)
    this.#filled.set()
  }

  readonly take: Effect.Effect<ReadonlyArray<SpeechEvent>> = Effect.suspend(() =>
    Effect.map(this.#filled.wait, () => {
      const events = this.#events
      this.#events = []
      this.#filled.clear()
      return events
    }),
  )
}

/** Reads until a frame ends the session; then it only waits for the client to disconnect. */
const read = (
  { pace, session }: Conversation,
  reader: Reader,
  speech: SpeechNews | undefined,
): Effect.Effect<Ending, SocketError> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const [sliced, work] = speech === undefined ? [sliceBytes, 0] : [detectedBytes, 1]
    for (;;) {
      for (const frame of yield* reader.pull) {
        if (session.hasEnded) continue
        if (frame instanceof TextFrame) return notStop
        const ending = typeof frame === "string" ? yield* takeText(session, frame) : flawOf(session, frame)
        if (ending !== undefined) return ending
        if (typeof frame === "string") continue
        for (let at = 0; at < frame.length && !session.hasEnded; at += sliced) {
          if (at > 0) yield* Effect.yieldNow
          const slice = frame.subarray(at, at + sliced)
          const took = yield* pace.take(slice.length / bytesPerSecond, work)
          session.push(slice, monotonicMsOf(clock))
          const beganMs = performance.now()
          speech?.hear(slice)
          took(performance.now() - beganMs)
        }
      }
    }
  })

// ---------------------------------------------------------------- events out

/** The warning about the session's limit is sent this long before it, milliseconds. */
const warnBeforeMs = 10_000

/** Writes captions and a warning as they come. A slow reader gets only the newest caption. */
const caption = ({ session, trace }: Conversation, writer: Writer): Effect.Effect<never, SocketError> =>
  Effect.gen(function* () {
    let shown = ""
    let warned = false
    for (let rev = 1; ; rev++) {
      const hypothesis = yield* session.nextHypothesis
      const delta = deltaOf(shown, hypothesis, rev)
      shown = hypothesis.text
      yield* writer.write(JSON.stringify({ type: "transcript.text.delta", ...delta }))
      if (trace !== undefined) trace.deltas = rev
      const leftMs = remainingMs(session.samples)
      if (warned || leftMs > warnBeforeMs) continue
      warned = true
      yield* writer.write(JSON.stringify({ type: "warning", warning: "session limit", remaining_ms: leftMs }))
    }
  })

const tellSpeech = (speech: SpeechNews, writer: Writer): Effect.Effect<never, SocketError> =>
  Effect.gen(function* () {
    for (;;) {
      for (const { audioMs, type } of yield* speech.take) {
        yield* writer.write(JSON.stringify({ type: `speech_${type}`, audio_ms: audioMs }))
      }
    }
  })

// ---------------------------------------------------------------- the whole

const credentialEnding = (end: CredentialEnd) =>
  failure(end === "credential revoked" ? "Invalid API key" : "Token has expired", 1008, end)

/**
 * Runs until any of its fibers ends or fails, which ends the session. An idle session has only the
 * reader's fiber: a node holds a thousand of them.
 */
const untilEnding = (
  conversation: Conversation,
  reader: Reader,
  writer: Writer,
): Effect.Effect<Ending, SocketError> =>
  Effect.contextWith((context) => {
    const { language, onCredentialEnd, session, speechEvents } = conversation
    const fibers: Array<Fiber.Fiber<Ending, SocketError>> = []
    const speech = speechEvents ? new SpeechNews() : undefined
    const run = Effect.tapError(session.run, (error) => reportFailure(error, "/v1/audio/transcriptions/ws"))
    const listen = Effect.match(run, {
      onSuccess: (word) => endingOf(word, session, language),
      onFailure: (error) => failure(detailOf(error), failedCode, "transcription failed"),
    })
    let unwatch = () => {}
    const first = Effect.callback<Ending, SocketError>((resume) => {
      const link = (part: Effect.Effect<Ending, SocketError>): void => {
        const fiber = Effect.runForkWith(context)(part)
        fibers.push(fiber)
        fiber.addObserver(resume)
      }
      unwatch = onCredentialEnd((end) => resume(Effect.succeed(credentialEnding(end))))
      session.whenRoused(() => {
        link(listen)
        link(caption(conversation, writer))
        if (speech !== undefined) link(tellSpeech(speech, writer))
      })
      link(read(conversation, reader, speech))
    })
    const release = Effect.suspend(() => {
      unwatch()
      return Fiber.interruptAll(fibers)
    })
    return Effect.catchCauseIf(Effect.ensuring(first, release), Cause.hasDies, (cause) =>
      Effect.as(
        reportFailure(cause, "/v1/audio/transcriptions/ws"),
        failure("Internal server error", failedCode, "failed"),
      ),
    )
  })

/** One session from its first frame to its close; true if it failed on this side. */
export const converse = (
  conversation: Conversation,
  reader: Reader,
  writer: Writer,
): Effect.Effect<boolean, SocketError> =>
  Effect.gen(function* () {
    const { code, events, reason } = yield* untilEnding(conversation, reader, writer)
    conversation.trace?.closed(code)
    for (const event of events) yield* writer.write(JSON.stringify(event))
    yield* writer.write(new CloseEvent(code, reason))
    return code === failedCode
  })
