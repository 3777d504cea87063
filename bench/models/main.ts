// The entry point of `npm run models:eval`, the evaluation of the built-in models. Loads the product's own engines with the
// weights of a catalog (for pictures it starts a node), measures them and prints the results; with --write it also updates
// models/eval/results.json and the model cards.
import { readFileSync, writeFileSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Clock, Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { runCommandLine } from "#cli/shared/CommandLine.ts"
import { version } from "#cli/shared/Version.ts"
import { describeMachine, machineLine } from "#harness/report/Machine.ts"
import { asJson, asText, type Report, type Section } from "../support/Findings.ts"
import { cards, measuredText, type Results, withMeasured } from "./Cards.ts"
import { chatSections } from "./ChatQuality.ts"
import { answersPage, type JudgedAnswer, judgedAnswers } from "./ChatRubric.ts"
import { cloneSections } from "./CloneQuality.ts"
import { EvaluatedCatalog, evaluatedWeights, loadChatModel } from "./Engines.ts"
import { pictureSections } from "./sight/PictureQuality.ts"
import { transcriptionSections } from "./TranscriptionQuality.ts"
import { voiceSections } from "./VoiceQuality.ts"

const models = new URL("../../models/", import.meta.url)

const parts = {
  transcription: transcriptionSections,
  voices: voiceSections,
  clones: cloneSections,
  chat: chatSections,
  pictures: pictureSections,
}
type Part = keyof typeof parts
const partNames: ReadonlyArray<Part> = ["transcription", "voices", "clones", "chat", "pictures"]

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
      "After a whole evaluation of the built-in models, write models/eval/results.json and the measured parts of the model cards",
    ),
    Flag.withDefault(false),
  ),
}

const writeCards = (results: Results, answers: ReadonlyArray<JudgedAnswer>) => {
  writeFileSync(new URL("eval/chat-answers.md", models), answersPage(answers))
  writeFileSync(new URL("eval/results.json", models), `${JSON.stringify(results, null, 1)}\n`)
  for (const [folder, kinds] of Object.entries(cards)) {
    const path = new URL(`${folder}/README.md`, models)
    const updated = withMeasured(readFileSync(path, "utf8"), measuredText(results, kinds))
    if (updated === undefined) throw new Error(`${folder}/README.md has no place for the measured part`)
    writeFileSync(path, updated)
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
      const answers = yield* Effect.scoped(Effect.flatMap(loadChatModel, judgedAnswers)).pipe(
        Effect.provide(EvaluatedCatalog.at()),
      )
      yield* Effect.sync(() => writeCards({ machine: machineLine(machine), weights, sections }, answers))
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
