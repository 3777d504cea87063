// The model's symbol table: one id for each character, 0 at both ends. Read once at load from the published
// `tokenizer.json` (or `config.json`, which contains the same table).
import { readFile } from "node:fs/promises"
import { basename } from "node:path"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type EngineError, loadFailed } from "../../protocol/Engine.ts"

export interface Symbols {
  /** Whether the model has an id for this character. */
  readonly has: (symbol: string) => boolean
  /** Ids of known characters, unknown ones dropped, pad id first and last; for the graph's input int64 [1, n + 2]. */
  readonly ids: (phonemes: string) => ReadonlyArray<number>
}

/** The longest row of ids that the published graph accepts, without pads. */
export const maxSymbols = 510

const Vocabulary = Schema.Record(Schema.String, Schema.Int)
const TokenizerFile = Schema.fromJsonString(
  Schema.Union([
    Schema.Struct({ model: Schema.Struct({ vocab: Vocabulary }) }),
    Schema.Struct({ vocab: Vocabulary }),
  ]),
)

const decode = Schema.decodeUnknownEffect(TokenizerFile)

export const fromVocabulary = (vocabulary: Readonly<Record<string, number>>): Symbols => {
  // Id 0 is the pad, "$": a dollar sign in a text must never become a pad.
  const table = new Map(
    Object.entries(vocabulary).filter(([symbol, id]) => id > 0 && [...symbol].length === 1),
  )
  return {
    has: (symbol) => table.has(symbol),
    ids: (phonemes) => {
      const ids = [0]
      for (const symbol of phonemes) {
        const id = table.get(symbol)
        if (id !== undefined) ids.push(id)
      }
      ids.push(0)
      return ids
    },
  }
}

export const loadSymbols = (path: string): Effect.Effect<Symbols, EngineError> =>
  Effect.tryPromise(() => readFile(path, "utf8")).pipe(
    Effect.flatMap(decode),
    Effect.map((file) => fromVocabulary("model" in file ? file.model.vocab : file.vocab)),
    Effect.mapError(() => loadFailed("", `${basename(path)}: not a readable symbol table`)),
  )
