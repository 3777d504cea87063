// The entry point of the evaluation of the built-in models: `npm run models:eval`. Loads the product's own engines on the
// files of a catalog, measures, prints; with --write it also updates models/eval/results.json and the model cards.
import { readFileSync, writeFileSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Clock, Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { runCommandLine } from "#cli/shared/CommandLine.ts"
import { version } from "#cli/shared/Version.ts"
import { asJson, asText, type Report, type Section } from "../support/Findings.ts"
import { describeMachine, machineLine } from "../support/Machine.ts"
import { cards, measuredText, type Results, withMeasured } from "./Cards.ts"
import { clonesSections } from "./Clones.ts"
import { earsSections } from "./Ears.ts"
import { EvaluatedCatalog, evaluatedWeights } from "./Engines.ts"
import { voicesSections } from "./Voices.ts"
import { wordsSections } from "./Words.ts"

const models = new URL("../../models/", import.meta.url)

const parts = { ears: earsSections, voices: voicesSections, clones: clonesSections, words: wordsSections }
type Part = keyof typeof parts
const partNames: ReadonlyArray<Part> = ["ears", "voices", "clones", "words"]

const flags = {
  json: Flag.Boolean("json").pipe(
    Flag.withDescription("Print one JSON document and nothing else"),
    Flag.withDefault(false),
  ),
  only: Flag.Literals("only", partNames).pipe(
    Flag.withDescription("Evaluate this part alone"),
    Flag.optional,
  ),
  catalog: Flag.String("catalog").pipe(
    Flag.withDescription("Evaluate the models of this catalog instead of the built-in ones"),
    Flag.optional,
  ),
  write: Flag.Boolean("write").pipe(
    Flag.withDescription(
      "Renew models/eval/results.json and the measured parts of the model cards, after a whole evaluation of the built-in models",
    ),
    Flag.withDefault(false),
  ),
}

const writeCards = (results: Results) => {
  writeFileSync(new URL("eval/results.json", models), `${JSON.stringify(results, null, 1)}\n`)
  for (const [folder, kinds] of Object.entries(cards)) {
    const path = new URL(`${folder}/README.md`, models)
    const renewed = withMeasured(readFileSync(path, "utf8"), measuredText(results, kinds))
    if (renewed === undefined) throw new Error(`${folder}/README.md has no place for the measured part`)
    writeFileSync(path, renewed)
  }
}

const command = Command.make(
  "models:eval",
  flags,
  Effect.fn(function* ({ catalog, json, only, write }) {
    const startedMs = yield* Clock.currentTimeMillis
    const machine = describeMachine(new Date(startedMs))
    const chosen = Option.match(only, { onNone: () => partNames, onSome: (part) => [part] })
    const sections: Array<Section> = []
    for (const part of chosen) {
      const made = Effect.scoped(parts[part]).pipe(
        Effect.provide(EvaluatedCatalog.at(Option.getOrUndefined(catalog))),
      )
      sections.push(...(yield* made))
    }
    const elapsedSeconds = ((yield* Clock.currentTimeMillis) - startedMs) / 1000
    const report: Report = { suite: "models", quick: false, machine, elapsedSeconds, sections }
    yield* Console.log(json ? asJson(report) : asText(report))
    if (write && Option.isNone(only) && Option.isNone(catalog)) {
      const weights = yield* Effect.provide(evaluatedWeights, EvaluatedCatalog.at())
      yield* Effect.sync(() => writeCards({ machine: machineLine(machine), weights, sections }))
    }
  }),
).pipe(Command.withDescription("Quality of the built-in models, measured through the product's own engines"))

const main = runCommandLine(command, process.argv.slice(2), version).pipe(
  Effect.flatMap((status) =>
    Effect.sync(() => {
      process.exitCode = status
    }),
  ),
  Effect.provide(NodeServices.layer),
)

NodeRuntime.runMain(main)
