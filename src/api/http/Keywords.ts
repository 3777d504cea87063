// The phrases of a request that transcribes, from a query or a form.
import { Effect, Schema } from "effect"
import type { InvalidRequest } from "#domain/wire/Errors.ts"
import { Keywords, keywordNames } from "#domain/wire/Transcription.ts"
import { invalidRequestOf } from "./JsonBody.ts"

const decodeKeywords = Schema.decodeUnknownEffect(Schema.Struct({ keywords: Keywords }))

/** The phrases under any of their names; empty ones count as absent. */
export const keywordsOf = (
  valuesOf: (name: string) => ReadonlyArray<string>,
): Effect.Effect<ReadonlyArray<string>, InvalidRequest> => {
  const keywords = keywordNames.flatMap(valuesOf).filter((phrase) => phrase !== "")
  return keywords.length === 0
    ? Effect.succeed([])
    : Effect.mapBoth(decodeKeywords({ keywords }), {
        onFailure: invalidRequestOf,
        onSuccess: (decoded) => decoded.keywords,
      })
}
