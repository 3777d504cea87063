// Reads what an EngineSpec names: files by role, JSON files, the adapter's options. All adapters use it, so errors in a
// catalog entry have the same texts whatever the engine. Error texts contain file names, never
// folders.
import { readFile } from "node:fs/promises"
import { basename } from "node:path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type EngineError, type EngineSpec, loadFailed } from "../../protocol/Engine.ts"

/** Absolute path of a role's file. */
export const fileOf = (spec: EngineSpec, role: string): Effect.Effect<string, EngineError> => {
  const path = spec.files[role]
  return path === undefined
    ? Effect.fail(loadFailed(role, `the model entry names no file for "${role}"`))
    : Effect.succeed(path)
}

export const readJsonFile = (spec: EngineSpec, role: string): Effect.Effect<unknown, EngineError> =>
  Effect.flatMap(fileOf(spec, role), (path) =>
    Effect.tryPromise({
      try: async (): Promise<unknown> => JSON.parse(await readFile(path, "utf8")),
      catch: (cause) => {
        const reason = (cause as NodeJS.ErrnoException).code ?? (cause as Error).name
        return loadFailed(role, `${basename(path)}: ${reason}`)
      },
    }),
  )

export const decodeOptions = <S extends Schema.ConstraintDecoder<unknown>>(schema: S, spec: EngineSpec) =>
  Schema.decodeUnknownEffect(schema)(spec.options).pipe(
    Effect.mapError((error) => loadFailed("options", error.message)),
  )
