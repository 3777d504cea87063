// The references of a run: the built-in ones, and before them those of the operator's file.
import { readFileSync } from "node:fs"
import { Effect, Schema } from "effect"
import { localFailure } from "../shared/NodeClient.ts"
import { publicReferences } from "./PublicReferences.ts"
import { Reference } from "./Reference.ts"

/** By the name under which a model is proven: a preset, or the text that was given. */
const References = Schema.fromJsonString(Schema.Record(Schema.String, Reference))

const decode = Schema.decodeUnknownEffect(References)

/** @param path of the operator's own references, which are used before the built-in ones; undefined: none */
export const readReferences = (path: string | undefined) =>
  Effect.gen(function* () {
    if (path === undefined) return publicReferences
    const text = yield* Effect.try({
      try: () => readFileSync(path, "utf8"),
      catch: (cause) =>
        localFailure(`--references: ${cause instanceof Error ? cause.message : String(cause)}`),
    })
    const own = yield* Effect.mapError(decode(text), ({ message }) =>
      localFailure(`--references: ${path}: ${message.replace(/\s*\n\s*/g, " ")}`),
    )
    return { ...publicReferences, ...own }
  })
