// The evaluation of the built-in models: their quality, measured through the product's own engines with the weights of a
// catalog (for pictures a node is started).

import { writeFileSync } from "node:fs"
import { Effect, type Scope } from "effect"
import type { Part } from "#harness/report/Figure.ts"
import { ChildFailed } from "../../bench/support/Child.ts"
import { type Suite, suite } from "../../bench/support/Suite.ts"
import { chatSections } from "./ChatQuality.ts"
import { answersPage, judgedAnswers } from "./ChatRubric.ts"
import { cloneSections } from "./CloneQuality.ts"
import { EvaluatedCatalog, evaluatedWeights, loadChatModel } from "./Engines.ts"
import { keywordSections } from "./KeywordQuality.ts"
import { languageSections } from "./LanguageQuality.ts"
import { pictureSections } from "./sight/PictureQuality.ts"
import { transcriptionSections } from "./TranscriptionQuality.ts"
import { voiceSections } from "./VoiceQuality.ts"

/** On the models of a catalog; the built-in ones if it is absent. */
export const modelsSuite = (catalog?: string): Suite => {
  const on = <A, E>(measured: Effect.Effect<A, E, EvaluatedCatalog | Scope.Scope>) =>
    Effect.scoped(Effect.provide(measured, EvaluatedCatalog.at(catalog))).pipe(
      Effect.mapError((cause) => {
        const detail = cause instanceof Error ? cause.message : String(cause)
        return new ChildFailed({ child: "bench models", detail })
      }),
    )
  const section =
    <E>(measured: Effect.Effect<ReadonlyArray<Part>, E, EvaluatedCatalog | Scope.Scope>) =>
    () =>
      on(measured)
  return {
    ...suite({
      name: "models",
      plans: { full: undefined, quick: undefined },
      start: () => Effect.void,
      sections: {
        transcription: section(transcriptionSections),
        languages: section(languageSections),
        keywords: section(keywordSections),
        voices: section(voiceSections),
        clones: section(cloneSections),
        chat: section(chatSections),
        pictures: section(pictureSections),
      },
    }),
    weights: on(evaluatedWeights),
  }
}

/** Writes the judged answers of the built-in chat model to models/eval/chat-answers.md. */
export const writeAnswers = Effect.flatMap(loadChatModel, judgedAnswers).pipe(
  Effect.map((answers) => writeFileSync(new URL("./chat-answers.md", import.meta.url), answersPage(answers))),
  Effect.scoped,
  Effect.provide(EvaluatedCatalog.at()),
  Effect.orDie,
)
