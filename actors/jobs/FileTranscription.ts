// A whole file through a transcription engine, window by window: decoded audio in, segments and a transcript out.
// Between two windows anybody else may have the engine, so a long file never holds up a short one. Used by the
// synchronous and streaming handlers and by jobs; knows no HTTP and no accounts.
import { Deferred, Effect } from "effect"
import { LISTEN_RATE_HZ, samplesToSeconds } from "#domain/audio/Audio.ts"
import {
  joinTexts,
  type Transcript,
  type TranscriptProgress,
  type TranscriptSegment,
} from "#domain/audio/Transcript.ts"
import { nothingPunctuated, punctuationProblem } from "#domain/language/Punctuated.ts"
import { InvalidRequest, type ModelNotLoaded } from "#domain/wire/Errors.ts"
import type {
  Segment,
  TranscribeCall,
  TranscribeEnd,
  TranscribeStarted,
  TranscriptionEngine,
} from "#engines/protocol/Engine.ts"
import type { RunError } from "../engine/EngineRequest.ts"
import { SegmentPunctuation } from "../live/SegmentPunctuation.ts"
import { ModelRegistry } from "../model/ModelRegistry.ts"

/** What the caller of the API chose. */
export interface TranscribeOptions {
  readonly language: string | undefined
  readonly prompt: string
  readonly temperature: number
  readonly punctuation: boolean | undefined
  readonly words: boolean
}

/** A file's samples, 16 kHz mono, counted from its beginning. Where they lie is their owner's business. */
export interface TranscriberAudio<E> {
  /** Decodes on: how many more samples there are, or undefined at the end. */
  readonly next: Effect.Effect<number | undefined, E>
  /** `next` may be asked while at most so many wait to be released. */
  readonly atMostWaiting: number
  readonly span: (from: number, count: number) => TranscribeCall["samples"]
  /** Samples before this one are no longer needed. */
  readonly release: (before: number) => void
}

export interface TranscriberJob<E> {
  readonly modelId: string
  readonly options: TranscribeOptions
  /** Lets those who wait in person go first. */
  readonly background: boolean
  /** Whose it is: users take turns at the engine. */
  readonly user?: string
  /** Where an earlier run of the same file stopped. */
  readonly from?: TranscriptProgress | undefined
  /** From `from` on. */
  readonly audio: TranscriberAudio<E>
  /** Asked before each window, with the samples decoded so far: the caller's chance to stop (money, turns). */
  readonly beforeWindow: (decodedSamples: number) => Effect.Effect<void, E>
  /** The engine has accepted a window; what it refuses is refused before the first of these. */
  readonly onStarted: () => void
  readonly onSegment: (segment: TranscriptSegment) => void
  /** Samples that are finished with, whenever there are more of them. */
  readonly onHeard?: (samples: number) => void
  /** After each call of the engine: from there another run can go on. */
  readonly onProgress?: (progress: TranscriptProgress) => void
}

type EngineFacts = TranscriptionEngine["facts"]

/** The window until the engine has said its own: the specification's families have 30 s and 35 s. */
const assumedWindowSeconds = 30

/** Samples of one call: all that the engine takes, or just what it looks at, which saves sending the rest again. */
const windowOf = (facts: EngineFacts | undefined): number => {
  const { closedSeconds, windowSeconds } = facts ?? { windowSeconds: assumedWindowSeconds }
  const longest = Math.floor(windowSeconds * LISTEN_RATE_HZ)
  return closedSeconds === undefined
    ? longest
    : Math.min(longest, Math.ceil(closedSeconds * LISTEN_RATE_HZ) + 1)
}

/** Samples of one call at most: several windows, which the engine transcribes faster, where no other request waits. */
const longestOf = (facts: EngineFacts | undefined, windowSamples: number, alone: boolean): number =>
  !alone || facts?.togetherSeconds === undefined
    ? windowSamples
    : Math.max(windowSamples, Math.floor(facts.togetherSeconds * LISTEN_RATE_HZ))

const shifted = (segment: Segment, seconds: number): TranscriptSegment => {
  const { finishedSamples: _finished, windowAt: _at, ...heard } = segment
  return {
    ...heard,
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
): Effect.Effect<Transcript, E | RunError | ModelNotLoaded, ModelRegistry> =>
  Effect.gen(function* () {
    const registry = yield* ModelRegistry
    // All windows go to the engine of the first: tokens and window lengths are those of its weights.
    const model = registry.model(job.modelId)
    if (model !== undefined) yield* model.hold
    const segments = [...(job.from?.segments ?? [])]
    let language = job.from?.language ?? job.options.language
    let previousTokens = job.from?.previousTokens ?? []
    let punctuating = job.from?.punctuating ?? nothingPunctuated
    let doneSamples = job.from?.samples ?? 0
    let decodedSamples = doneSamples
    let ended = false

    /** Decodes until more than `samples` wait, or all of the file does. */
    const fill = Effect.fnUntraced(function* (samples: number) {
      const enough = Math.min(samples, job.audio.atMostWaiting)
      while (!ended && decodedSamples - doneSamples <= enough) {
        const more = yield* job.audio.next
        if (more === undefined) ended = true
        else decodedSamples += more
      }
    })

    for (;;) {
      const view = model === undefined ? registry.find(job.modelId) : model.view()
      const host = view?.host
      const facts = host?.facts as EngineFacts | undefined
      const windowSamples = windowOf(facts)
      // One window at a time for a job, and for a file while others need the engine.
      const alone = !job.background && host?.isContended(job.user ?? "") !== true
      const longestSamples = longestOf(facts, windowSamples, alone)
      // One sample more than a window, where there is one: whoever sends the last window has to know that it is. Half
      // of what may be heard together is soon decoded, and heard sooner than a window and then the rest of it.
      yield* fill(Math.max(windowSamples, Math.ceil(longestSamples / 2)))
      const waiting = decodedSamples - doneSamples
      if (waiting === 0) break
      yield* job.beforeWindow(decodedSamples)
      // What is there by now: nobody waits for more than a window.
      const count = Math.min(longestSamples, waiting)
      const request: TranscribeCall = {
        samples: job.audio.span(doneSamples, count),
        language,
        prompt: job.options.prompt,
        previousTokens,
        temperature: job.options.temperature,
        punctuation: job.options.punctuation,
        words: job.options.words,
        last: ended && waiting <= count,
        ...(longestSamples > windowSamples ? { together: true } : {}),
      }
      // A window is heard whole or not at all: when it is repeated, half of it must not stand there twice.
      const heard: Array<TranscriptSegment> = []
      const choice = job.options.punctuation
      let marks = new SegmentPunctuation(choice, language ?? "", punctuating)
      const refused = Deferred.makeUnsafe<never, InvalidRequest>()
      const take = (segments: ReadonlyArray<TranscriptSegment>) => {
        for (const segment of segments) {
          heard.push(segment)
          job.onSegment(segment)
        }
      }
      const run = registry.run<TranscribeStarted, Segment, TranscribeEnd>(
        job.modelId,
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
          unit: (segment) => {
            const windowAt = doneSamples + (segment.windowAt ?? 0)
            take(marks.push(shifted(segment, samplesToSeconds(windowAt, LISTEN_RATE_HZ))))
            // It was the last of its piece.
            if (segment.finishedSamples !== undefined) take(marks.end())
            if (segment.finishedSamples !== undefined) job.onHeard?.(doneSamples + segment.finishedSamples)
          },
        },
        {
          urgency: job.background ? "background" : "interactive",
          continues: doneSamples > 0,
          ...(model === undefined ? {} : { on: model }),
          ...(job.user === undefined ? {} : { user: job.user }),
        },
      )
      // The next window is decoded while this one is heard.
      const [end] = yield* Effect.all(
        [Effect.raceFirst(run, Deferred.await(refused)), fill(windowSamples + longestSamples)],
        { concurrency: 2 },
      )
      take(marks.end())
      punctuating = marks.state
      segments.push(...heard)
      // An engine that consumed nothing would be asked the same for ever.
      const consumed = end.consumedSamples > 0 ? Math.min(end.consumedSamples, count) : count
      doneSamples += consumed
      job.audio.release(doneSamples)
      language = end.language
      previousTokens = end.previousTokens
      job.onHeard?.(doneSamples)
      job.onProgress?.({ segments, samples: doneSamples, language, previousTokens, punctuating })
    }
    return {
      text: joinTexts(segments.map(({ text }) => text)),
      language: language ?? "en",
      duration: samplesToSeconds(decodedSamples, LISTEN_RATE_HZ),
      segments,
    }
  }).pipe(Effect.scoped)
