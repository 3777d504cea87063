// The entry point of `npm run models:eval`, the evaluation of the built-in models. Loads the product's own engines with the
// weights of a catalog (for pictures it starts a node), measures them and prints the results; with --write it also updates
// bench/results and the model cards.
import { writeFileSync } from "node:fs"
import * as NodeRuntime from "@effect/platform-node/NodeRuntime"
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Clock, Console, Effect, Option } from "effect"
import { Command, Flag } from "effect/cli"
import { runCommandLine } from "#cli/shared/CommandLine.ts"
import { commit, version } from "#cli/shared/Version.ts"
import { describeMachine } from "#harness/report/Machine.ts"
import { writePages } from "../figures/Pages.ts"
import { keepResult, type RunFacts, resultOf } from "../run/ResultFile.ts"
import { asText } from "../support/Findings.ts"
import type { Measured } from "../support/Suite.ts"
import { chatSections } from "./ChatQuality.ts"
import { answersPage, judgedAnswers } from "./ChatRubric.ts"
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
      "After a whole evaluation of the built-in models, write its results to bench/results and the figures of the model cards",
    ),
    Flag.withDefault(false),
  ),
}

const command = Command.make(
  "models:eval",
  flags,
  Effect.fn(function* ({ catalog, json, only, write }) {
    const startedMs = yield* Clock.currentTimeMillis
    const machine = describeMachine(new Date(startedMs))
    const revision = commit()
    const chosen = Option.match(only, { onNone: () => partNames, onSome: (part) => [part] })
    const measured: Array<Measured> = []
    for (const name of chosen) {
      const made = Effect.scoped(parts[name]).pipe(
        Effect.provide(EvaluatedCatalog.at(Option.getOrUndefined(catalog))),
      )
      measured.push({ name, found: yield* made })
    }
    const facts: RunFacts = {
      suite: "models",
      quick: false,
      machine,
      revision,
      elapsedSeconds: Math.round(((yield* Clock.currentTimeMillis) - startedMs) / 1000),
    }
    yield* Console.log(json ? JSON.stringify(resultOf(facts, measured), null, 2) : asText(facts, measured))
    if (write && Option.isNone(only) && Option.isNone(catalog)) {
      const weights = yield* Effect.provide(evaluatedWeights, EvaluatedCatalog.at())
      const answers = yield* Effect.scoped(Effect.flatMap(loadChatModel, judgedAnswers)).pipe(
        Effect.provide(EvaluatedCatalog.at()),
      )
      yield* Effect.sync(() => {
        writeFileSync(new URL("eval/chat-answers.md", models), answersPage(answers))
        keepResult(resultOf({ ...facts, weights }, measured))
        writePages()
      })
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
