// `edgewise bench compare A B`: two result files side by side.
import { readFileSync, writeFileSync } from "node:fs"
import { Console, Effect, Option } from "effect"
import { Argument, Command, Flag } from "effect/cli"
import { compareResults, differencesOf, type Ratio } from "#harness/report/Compare.ts"
import { comparisonPageOf } from "#harness/report/ComparisonPage.ts"
import { digits, hasInterval, shown } from "#harness/report/Format.ts"
import { type Result, readResult } from "#harness/report/Result.ts"
import { readableSize } from "../shared/FileErrors.ts"
import { localFailure } from "../shared/NodeClient.ts"
import { jsonFlag, printJson, table } from "../shared/Output.ts"
import { WrongBench } from "./BenchPlan.ts"

/** Results have less than a megabyte a point. */
const mostBytes = 256 * 2 ** 20

const read = (path: string) =>
  Effect.try({
    try: (): Result => {
      if (readableSize(path) > mostBytes) throw new Error(`${path} is larger than any result`)
      return readResult(readFileSync(path, "utf8"), path)
    },
    catch: (cause) => new WrongBench({ message: cause instanceof Error ? cause.message : String(cause) }),
  })

const row = ({ a, b, better, differs, figure, kind, measure, ratio, unit }: Ratio): ReadonlyArray<string> => [
  kind,
  figure,
  measure,
  shown(a, unit),
  shown(b, unit),
  digits(ratio.value),
  hasInterval(ratio) ? `${digits(ratio.low)} to ${digits(ratio.high)}` : "",
  differs ? `${better} better` : "",
]

export const compare = Command.make(
  "compare",
  {
    a: Argument.String("A").pipe(Argument.withDescription("Result of a run (--out)")),
    b: Argument.String("B").pipe(Argument.withDescription("Another; ratios are B divided by A")),
    html: Flag.String("html").pipe(
      Flag.withMetavar("FILE"),
      Flag.withDescription("Write a report with plots; default: none"),
      Flag.optional,
    ),
    json: jsonFlag,
  },
  Effect.fn(function* ({ a, b, html, json }) {
    const [first, second] = [yield* read(a), yield* read(b)]
    const ratios = compareResults(first, second)
    const differences = differencesOf(first, second)
    if (Option.isSome(html)) {
      yield* Effect.try({
        try: () => writeFileSync(html.value, comparisonPageOf(first, second)),
        catch: (cause) => localFailure((cause as Error).message),
      })
    }
    if (json) return yield* printJson({ differences, ratios })
    yield* Console.log(`A: ${first.target.url}, ${first.machine.startedAt}`)
    yield* Console.log(`B: ${second.target.url}, ${second.machine.startedAt}`)
    for (const one of differences) yield* Console.log(`CAUTION: ${one}`)
    for (const load of new Set(ratios.map((one) => one.load))) {
      yield* Console.log(`\n${load}`)
      const heading = ["kind", "figure", "of", "A", "B", "B / A", "95 % interval", ""]
      yield* Console.log(table(heading, ratios.filter((one) => one.load === load).map(row)))
    }
    if (ratios.length > 0) {
      yield* Console.log(
        "\nOf 20 comparisons without a difference one is expected to look like one. Figures without an interval are pooled or rates.",
      )
    }
  }),
).pipe(Command.withDescription("Compare two results: ratios, intervals, what differs by more than chance"))
