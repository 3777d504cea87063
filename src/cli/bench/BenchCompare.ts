// `edgewise bench compare A B`: two result files side by side.
import { readFileSync, writeFileSync } from "node:fs"
import { Console, Effect, Option, Schema } from "effect"
import { Argument, Command } from "effect/cli"
import { table } from "#domain/process/Columns.ts"
import {
  comparedParts,
  compareResults,
  comparisonNote,
  comparisonTable,
  differencesOf,
  sidesOf,
} from "#harness/report/Compare.ts"
import { comparisonPageOf } from "#harness/report/ComparisonPage.ts"
import { parsed, type Result, resultIn } from "#harness/report/Result.ts"
import { Document, isDocument } from "../doctor/report/Document.ts"
import { resultOf } from "../doctor/report/MeasuredFigures.ts"
import { readableSize } from "../shared/FileErrors.ts"
import { localFailure } from "../shared/NodeClient.ts"
import { jsonFlag, printJson, textFlag } from "../shared/Output.ts"
import { WrongBench } from "./BenchPlan.ts"

/** Results have less than a megabyte a point. */
const mostBytes = 256 * 2 ** 20

const read = (path: string) =>
  Effect.try({
    try: (): Result => {
      if (readableSize(path) > mostBytes) throw new Error(`${path} is larger than any result`)
      const value = parsed(readFileSync(path, "utf8"), path)
      return isDocument(value) ? resultOf(Schema.decodeUnknownSync(Document)(value)) : resultIn(value, path)
    },
    catch: (cause) => new WrongBench({ message: cause instanceof Error ? cause.message : String(cause) }),
  })

export const compare = Command.make(
  "compare",
  {
    a: Argument.String("A").pipe(
      Argument.withDescription("Result of a run (--out), of a suite (bench/results) or of doctor (--json)"),
    ),
    b: Argument.String("B").pipe(Argument.withDescription("Another; ratios are B divided by A")),
    html: textFlag("html", "FILE", "Write a report with plots; default: none"),
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
    for (const [name, what] of sidesOf(first, second)) yield* Console.log(`${name}: ${what}`)
    for (const one of differences) yield* Console.log(`CAUTION: ${one}`)
    for (const [part, here] of comparedParts(ratios)) {
      const { heading, rows } = comparisonTable(here)
      yield* Console.log(`\n${part}\n${table(heading, rows)}`)
    }
    if (ratios.length > 0) yield* Console.log(`\n${comparisonNote}`)
  }),
).pipe(Command.withDescription("Compare two results: ratios, intervals, what differs by more than chance"))
