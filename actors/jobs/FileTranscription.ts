// Transcribes a whole file window by window: decoded audio in, segments and a transcript out. Other requests may run
// between two windows, so a long file does not delay a short one. Knows no HTTP and no accounts.
import { Deferred, Effect } from "effect"
import { listenRateHz, samplesToSeconds } from "#domain/audio/Audio.ts"
import {
  joinTexts,
  type Transcript,
  type TranscriptProgress,
  type TranscriptSegment,
} from "#domain/audio/Transcript.ts"
import { nothingPunctuated, punctuationProblem } from "#domain/language/Punctuated.ts"
import { InvalidRequest, type ModelNotLoaded } from "#domain/wire/Errors.ts"
import type { Segment, TranscribeCall, TranscriptionFacts } from "#engines/protocol/Transcription.ts"
import type { RunError } from "../engine/EngineRequest.ts"
import { SegmentPunctuation } from "../live/SegmentPunctuation.ts"
import type { ModelHandle } from "../model/ModelHandle.ts"

/** Options that the caller of the API chose. */
export interface TranscribeOptions {
  readonly language: string | undefined
  readonly prompt: string
  readonly temperature: number
  readonly punctuation: boolean | undefined
  readonly words: boolean
  /** Whether segments have the probabilities of their tokens. Absent: false. */
  readonly logprobs?: boolean
  /** Phrases that may occur. Absent: none. */
  readonly keywords?: ReadonlyArray<string>
  /** The text is wanted in English. Absent: false. */
  readonly translate?: boolean
}

/** A file's samples, 16 kHz mono, counted from its beginning. The implementation decides where they are stored. */
export interface TranscriberAudio<E> {
  /** Decodes more: the number of additional samples, or undefined at the end. */
  readonly next: Effect.Effect<number | undefined, E>
  /** `next` may be called while at most this many samples wait to be released. */
  readonly atMostWaiting: number
  readonly span: (from: number, count: number) => TranscribeCall["samples"]
  /** Samples before this one are no longer needed. */
  readonly release: (before: number) => void
}

interface TranscriberJob<E> {
  readonly model: ModelHandle<"transcription">
  readonly options: TranscribeOptions
  /** Interactive requests go first. */
  readonly background: boolean
  /** The queue of the engine alternates between users. */
  readonly user?: string
  /** The position where an earlier run of the same file stopped. */
  readonly from?: TranscriptProgress | undefined
  /** Samples from position `from` on. */
  readonly audio: TranscriberAudio<E>
  /** Runs before each window, with the number of samples decoded so far; its failure stops the transcription. */
  readonly beforeWindow: (decodedSamples: number) => Effect.Effect<void, E>
  /** The engine has accepted a window; a request that it refuses is refused before the first call. */
  readonly onStarted: () => void
  readonly onSegment: (segment: TranscriptSegment) => void
  /** Called with the number of samples that have been transcribed, whenever there are more. */
  readonly onTranscribed?: (samples: number) => void
  /** Called after each request to the engine: another run can continue from this state. */
  readonly onProgress?: (progress: TranscriptProgress) => void
}

/** Window until the engine has loaded and its facts are known, seconds: the supported model families have 30 and 35. */
const assumedWindowSeconds = 30

/** Samples of one request: all that the engine accepts, or only as many as it uses, which saves sending the rest twice. */
const windowOf = (facts: TranscriptionFacts | undefined): number => {
  const { closedSeconds, windowSeconds } = facts ?? { windowSeconds: assumedWindowSeconds }
  const longest = Math.floor(windowSeconds * listenRateHz)
  return closedSeconds === undefined
    ? longest
    : Math.min(longest, Math.ceil(closedSeconds * listenRateHz) + 1)
}

/** Most samples of one request: several windows, which the engine transcribes faster, if no other request waits. */
const longestOf = (facts: TranscriptionFacts | undefined, windowSamples: number, alone: boolean): number =>
  !alone || facts?.togetherSeconds === undefined
    ? windowSamples
    : Math.max(windowSamples, Math.floor(facts.togetherSeconds * listenRateHz))

const shifted = (segment: Segment, seconds: number): TranscriptSegment => {
  const { finishedSamples: _finished, windowAt: _at, ...placed } = segment
  return {
    ...placed,
    windowStart: seconds,
    start: segment.start + seconds,
    end: segment.end + seconds,
    ...(segment.words === undefined
      ? {}
      : {
          words: segment.words.map((word) => ({
            ...word,
            start: word.start + seconds,
            end: word.end + seconds,
          })),
        }),
  }
}

export const transcribeFile = <E>(
  job: TranscriberJob<E>,
): Effect.Effect<Transcript, E | RunError | ModelNotLoaded> =>
  Effect.gen(function* () {
    // All windows go to the engine of the first: tokens and window lengths are those of its weights.
    const model = job.model.current()
    if (model !== undefined) yield* model.hold
    const segments = [...(job.from?.segments ?? [])]
    let language = job.from?.language ?? job.options.language
    let previousTokens = job.from?.previousTokens ?? []
    let punctuating = job.from?.punctuating ?? nothingPunctuated
    let doneSamples = job.from?.samples ?? 0
    let decodedSamples = doneSamples
    let ended = false

    /** Decodes until more than `samples` are waiting, or to the end of the file. */
    const fill = Effect.fnUntraced(function* (samples: number) {
      const enough = Math.min(samples, job.audio.atMostWaiting)
      while (!ended && decodedSamples - doneSamples <= enough) {
        const more = yield* job.audio.next
        if (more === undefined) ended = true
        else decodedSamples += more
      }
    })

    for (;;) {
      const source = model ?? job.model
      const facts = source.facts()
      const windowSamples = windowOf(facts)
      // One window at a time for a job, and for a file while others need the engine.
      const alone = !job.background && !source.isContended(job.user ?? "")
      const longestSamples = longestOf(facts, windowSamples, alone)
      // Waits for one sample more than a window, if the file has one: only then is it known whether this window is the
      // last. Half of a request of several windows is decoded quickly, and transcribing it at once is faster than
      // sending one window and then the rest.
      yield* fill(Math.max(windowSamples, Math.ceil(longestSamples / 2)))
      const waiting = decodedSamples - doneSamples
      if (waiting === 0) break
      yield* job.beforeWindow(decodedSamples)
      // As many as have been decoded by now; it never waits for more than a window.
      const count = Math.min(longestSamples, waiting)
      const request: TranscribeCall = {
        samples: job.audio.span(doneSamples, count),
        language,
        prompt: job.options.prompt,
        previousTokens,
        temperature: job.options.temperature,
        punctuation: job.options.punctuation,
        words: job.options.words,
        ...(job.options.logprobs === true ? { logprobs: true } : {}),
        ...(job.options.keywords === undefined ? {} : { keywords: job.options.keywords }),
        ...(job.options.translate === true ? { translate: true } : {}),
        last: ended && waiting <= count,
        ...(longestSamples > windowSamples ? { together: true } : {}),
      }
      // Segments of a window count only once all of it is transcribed: if it is repeated, none of it may appear twice.
      const windowSegments: Array<TranscriptSegment> = []
      const choice = job.options.punctuation
      let marks = new SegmentPunctuation(choice, language ?? "", punctuating)
      const refused = Deferred.makeUnsafe<never, InvalidRequest>()
      const take = (segments: ReadonlyArray<TranscriptSegment>) => {
        for (const segment of segments) {
          windowSegments.push(segment)
          job.onSegment(segment)
        }
      }
      const run = job.model.run(
        request,
        {
          started: (facts) => {
            // A detected language is known only now.
            const problem = punctuationProblem(choice, facts.language)
            if (problem !== undefined) {
              const error = new InvalidRequest({ field: "punctuation", problem })
              return void Deferred.doneUnsafe(refused, Effect.fail(error))
            }
            marks = new SegmentPunctuation(choice, facts.language, punctuating)
            job.onStarted()
          },
          take: (segment) => {
            const windowAt = doneSamples + (segment.windowAt ?? 0)
            take(marks.push(shifted(segment, samplesToSeconds(windowAt, listenRateHz))))
            // It was the last of its piece.
            if (segment.finishedSamples !== undefined) take(marks.end())
            if (segment.finishedSamples !== undefined)
              job.onTranscribed?.(doneSamples + segment.finishedSamples)
          },
        },
        {
          urgency: job.background ? "background" : "interactive",
          continues: doneSamples > 0,
          ...(model === undefined ? {} : { on: model }),
          ...(job.user === undefined ? {} : { user: job.user }),
        },
      )
      // The next window is decoded while this one is transcribed.
      const [end] = yield* Effect.all(
        [Effect.raceFirst(run, Deferred.await(refused)), fill(windowSamples + longestSamples)],
        { concurrency: 2 },
      )
      take(marks.end())
      punctuating = marks.state
      segments.push(...windowSegments)
      // If the engine consumed nothing, the same request would be repeated forever.
      const consumed = end.consumedSamples > 0 ? Math.min(end.consumedSamples, count) : count
      doneSamples += consumed
      job.audio.release(doneSamples)
      language = end.language
      previousTokens = end.previousTokens
      job.onTranscribed?.(doneSamples)
      job.onProgress?.({ segments, samples: doneSamples, language, previousTokens, punctuating })
    }
    return {
      text: joinTexts(segments.map(({ text }) => text)),
      language: language ?? "en",
      duration: samplesToSeconds(decodedSamples, listenRateHz),
      segments,
    }
  }).pipe(Effect.scoped)
