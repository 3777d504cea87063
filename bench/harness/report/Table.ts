// A result as lines for a terminal. Pure.
import { oneLine } from "../client/Failures.ts"
import type { TranscriptsResult } from "../conversation/TranscriptCheck.ts"
import { type FigureName, factsOf } from "../figures/Figures.ts"
import { digits, loadName, shown, withInterval } from "./Format.ts"
import { machineLine } from "./Machine.ts"
import type { KindResult, PointResult, Result } from "./Result.ts"

const columns = (rows: ReadonlyArray<ReadonlyArray<string>>): ReadonlyArray<string> => {
  const widths = rows[0]?.map((_, at) => Math.max(...rows.map((row) => row[at]?.length ?? 0))) ?? []
  return rows.map((row) => `  ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("  ")}`.trimEnd())
}

const figureRows = ({ figures }: KindResult): ReadonlyArray<ReadonlyArray<string>> =>
  (
    Object.entries(figures) as ReadonlyArray<[FigureName, NonNullable<KindResult["figures"][FigureName]>]>
  ).map(([name, figure]) => {
    const { unit } = factsOf(name)
    return [
      name,
      shown(figure.mean.value, unit),
      withInterval(figure.p50, unit),
      withInterval(figure.p95, unit),
      withInterval(figure.p99, unit),
      shown(figure.max, unit),
    ]
  })

const heading = ["figure", "mean", "p50 (95 % interval)", "p95", "p99", "max"]

const rates = (point: PointResult): string =>
  [
    `${digits(point.completed_per_second)} completed/s`,
    ...(point.output_tokens_per_second === undefined
      ? []
      : [`${digits(point.output_tokens_per_second)} tokens/s`]),
    ...(point.audio_seconds_per_second === undefined
      ? []
      : [`${digits(point.audio_seconds_per_second)} s of audio/s`]),
    `goodput ${digits(100 * point.goodput.share.value)} %, ${digits(point.goodput.per_second)}/s`,
  ].join(", ")

const pointLines = (point: PointResult): ReadonlyArray<string> => [
  `${loadName(point.load)}: ${point.requests} requests in ${digits(point.measured_s)} s, ${point.failed} failed; ${rates(point)}`,
  ...Object.entries(point.errors).map(
    ([key, count]) => `  ${count} failed (${key}): ${point.error_examples[key] ?? ""}`,
  ),
  ...Object.entries(point.kinds).flatMap(([kind, result]) => [
    ...(Object.keys(point.kinds).length > 1
      ? [`  ${kind}: ${result.requests} requests, ${result.failed} failed`]
      : []),
    ...columns([heading, ...figureRows(result)]),
    ...(result.word_error_percent === undefined
      ? []
      : [`  word errors over all words: ${digits(result.word_error_percent)} %`]),
  ]),
  ...(point.broken ?? []).map((what) => `  objective not held: ${what}`),
  ...(point.client.bottleneck === undefined
    ? []
    : [`  CAUTION: the client limited this result: ${point.client.bottleneck}`]),
]

const kneeLine = ({ broke, held, unit }: NonNullable<Result["knee"]>): string => {
  if (held === null) return "knee: no load held the objective"
  const above = broke === null ? "; no higher load was tried" : `; ${digits(broke)} did not`
  return `knee: ${digits(held)} ${unit} held the objective${above}`
}

const transcriptLines = ({
  compared,
  differences,
  equal,
  failure,
}: TranscriptsResult): ReadonlyArray<string> => [
  `transcripts: ${equal} of ${compared} are those of a file with the same audio`,
  ...differences
    .slice(0, 3)
    .map(({ conversation, file }) => `  "${oneLine(conversation)}" instead of "${oneLine(file)}"`),
  ...(failure === undefined ? [] : [`  the comparison ended early: ${failure}`]),
]

export const linesOf = (result: Result): ReadonlyArray<string> => [
  `${result.suite} on ${result.target.url}`,
  machineLine(result.machine),
  ...result.points.flatMap(pointLines),
  ...(result.transcripts === undefined ? [] : transcriptLines(result.transcripts)),
  ...(result.knee === undefined ? [] : [kneeLine(result.knee)]),
]
