// The constraints of replies that have to follow tools, a response format or both. Grammars are compiled on a thread; what was
// found out about a grammar and the model's vocabulary is kept for later requests.
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import { LRUCache } from "lru-cache"
import { EngineError, type GenerateRequest } from "../../protocol/Engine.ts"
import type { Constraint } from "../grammar/Constraint.ts"
import { GrammarCompiler } from "../grammar/compile/GrammarCompiler.ts"
import { BoundGrammar } from "../grammar/match/ReplyConstraint.ts"
import { TokenTrie } from "../grammar/match/TokenTrie.ts"
import type { ThoughtMarkers } from "../output/ThoughtFilter.ts"
import type { Vocabulary } from "../output/Vocabulary.ts"
import type { ChatPrompt } from "../prompt/ChatPrompt.ts"
import type { ShapeRequest } from "./Shapes.ts"

/** Grammars whose masks are kept, each up to about 12 MB. A guess. */
const mostBound = 8

/** What constrained replies of a model share. */
interface Tables {
  readonly trie: TokenTrie
  readonly compiler: GrammarCompiler<ShapeRequest>
}

export class Constraints {
  readonly #vocabulary: Vocabulary
  readonly #prompts: ChatPrompt
  readonly #bound = new LRUCache<string, BoundGrammar>({ max: mostBound })
  #tables: Tables | undefined

  constructor(vocabulary: Vocabulary, prompts: ChatPrompt) {
    this.#vocabulary = vocabulary
    this.#prompts = prompts
  }

  /**
   * Makes the tree of the vocabulary: 0.5 s of the event loop for 151,936 tokens. At the first constrained request it would stop
   * all running replies for that time, so a model does it while it loads.
   */
  prepare(): void {
    this.#opened()
  }

  /**
   * Makes the constraint of each reply to a request; undefined if a reply may be anything. `thought`: the markers of the thinking
   * block that the reply begins with, if it has one.
   */
  of(
    { format, tools }: Pick<GenerateRequest, "format" | "tools">,
    thought: ThoughtMarkers | undefined,
  ): Effect.Effect<(() => Constraint) | undefined, EngineError> {
    return Effect.suspend(() => {
      if (format === undefined && tools === undefined) return Effect.succeed(undefined)
      const request: ShapeRequest = {
        family: this.#prompts.tools.name,
        ...(format === undefined ? {} : { format }),
        ...(tools === undefined ? {} : { tools }),
        ...(thought === undefined ? {} : { thoughtEnd: thought.close }),
      }
      const key = createHash("sha256").update(JSON.stringify(request)).digest("base64")
      const known = this.#bound.get(key)
      if (known !== undefined) return Effect.succeed(() => known.reply())
      const { compiler, trie } = this.#opened()
      return compiler.compile(request).pipe(
        Effect.mapError(
          ({ detail, field }) =>
            new EngineError({
              reason: "InvalidInput",
              field: field === "" ? (format === undefined ? "tools" : "format") : field,
              detail,
            }),
        ),
        Effect.map((grammar) => {
          const bound =
            this.#bound.get(key) ??
            new BoundGrammar(grammar, trie, (text) => this.#prompts.markerTokens(text))
          this.#bound.set(key, bound)
          return () => bound.reply()
        }),
      )
    })
  }

  /** Drops what can be computed again. */
  clear(): void {
    this.#bound.clear()
  }

  /** Ends the thread. */
  close(): void {
    this.#tables?.compiler.close()
  }

  #opened(): Tables {
    if (this.#tables === undefined) {
      const vocabulary = this.#vocabulary
      const trie = new TokenTrie({
        size: vocabulary.size,
        bytes: (token) => vocabulary.bytes(token),
        isEnd: (token) => vocabulary.ends.has(token),
      })
      const program = new URL("./shapesMain.ts", import.meta.url)
      this.#tables = { trie, compiler: new GrammarCompiler({ program, singleBytes: trie.singleBytes }) }
    }
    return this.#tables
  }
}
