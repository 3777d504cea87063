// The result of a run: a JSON document whose form is versioned, so that reports and comparisons of other versions can
// refuse what they do not understand.

import type { TranscriptsResult } from "../conversation/TranscriptCheck.ts"
import type { Interval } from "../figures/Bootstrap.ts"
import type { FigureName } from "../figures/Figures.ts"
import type { ClientCost } from "../load/ClientLag.ts"
import type { Machine } from "./Machine.ts"

export const resultForm = "edgewise-bench"
/** Raised when a field changes its meaning or goes. */
export const resultVersion = 1

/** A figure of one kind of request at one point of the load, in the figure's unit. */
export interface FigureResult {
  readonly count: number
  readonly mean: Interval
  readonly p50: Interval
  readonly p90: Interval
  readonly p95: Interval
  readonly p99: Interval
  readonly max: number
  /** HdrHistogram V2, compressed, in base64; values in thousandths of the unit. */
  readonly histogram: string
}

export interface KindResult {
  readonly requests: number
  readonly failed: number
  /** A hundred times the share of wrong words, over all words together. */
  readonly word_error_percent?: number
  readonly figures: Partial<Readonly<Record<FigureName, FigureResult>>>
}

/** One request of the timeline. */
export interface TimelinePoint {
  /** Scheduled moment, seconds from the start of the measured time. */
  readonly at_s: number
  readonly kind: string
  /** First piece or first audible sample; absent where the kind has none. */
  readonly first_ms?: number
  readonly e2e_ms?: number
  /** Key of a failure. */
  readonly failed?: string
}

export interface PointResult {
  readonly load:
    | { readonly loop: "open"; readonly rate_per_second: number }
    | { readonly loop: "closed"; readonly clients: number }
  readonly measured_s: number
  readonly requests: number
  readonly warmup_requests: number
  readonly failed: number
  /** How often requests failed, by status or cause. */
  readonly errors: Readonly<Record<string, number>>
  /** An example for each key of `errors`. */
  readonly error_examples: Readonly<Record<string, string>>
  readonly completed_per_second: number
  readonly output_tokens_per_second?: number
  /** Seconds of audio made or transcribed for each second. */
  readonly audio_seconds_per_second?: number
  readonly most_in_flight: number
  readonly goodput: { readonly share: Interval; readonly per_second: number }
  /** What of the objective does not hold; absent without an objective. */
  readonly broken?: ReadonlyArray<string>
  readonly kinds: Readonly<Record<string, KindResult>>
  readonly client: ClientCost
  /** At most 2,000 requests, evenly chosen. */
  readonly timeline: ReadonlyArray<TimelinePoint>
}

export interface Result {
  readonly form: typeof resultForm
  readonly version: typeof resultVersion
  readonly suite: string
  readonly tool: { readonly name: "edgewise"; readonly version: string; readonly commit: string }
  readonly machine: Machine
  readonly target: {
    readonly url: string
    /** What the server says of itself; fields that it does not have are absent. */
    readonly reported: Readonly<Record<string, unknown>>
  }
  readonly settings: Readonly<Record<string, unknown>>
  readonly points: ReadonlyArray<PointResult>
  /** Of conversations: transcripts of turns against those of files with the same audio. */
  readonly transcripts?: TranscriptsResult
  readonly knee?: {
    readonly unit: "requests per second" | "clients"
    readonly held: number | null
    readonly broke: number | null
  }
}

/** A file that is no result, as one sentence. */
export class WrongResult extends Error {}

/** @throws WrongResult */
export const readResult = (text: string, name: string): Result => {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    throw new WrongResult(`${name} is not JSON`)
  }
  const { form, points, version } = (value ?? {}) as Partial<Result>
  if (form !== resultForm || !Array.isArray(points))
    throw new WrongResult(`${name} is no result of edgewise bench`)
  if (version !== resultVersion) {
    throw new WrongResult(
      `${name} has the form of version ${version}; this program reads version ${resultVersion}`,
    )
  }
  return value as Result
}
