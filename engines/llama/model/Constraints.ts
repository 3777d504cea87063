// The constraints of replies that have to follow tools, a response format or both. Grammars are compiled on a thread; what was
// found out about a grammar and the model's vocabulary is kept for later requests.
import { createHash } from "node:crypto"
import * as Effect from "effect/Effect"
import { LRUCache } from "lru-cache"
import { grammarBytes } from "../../grammar/CompiledGrammar.ts"
import type { Constraint } from "../../grammar/Constraint.ts"
import { BoundGrammar } from "../../grammar/match/ReplyConstraint.ts"
import type { TokenTrie } from "../../grammar/match/TokenTrie.ts"
import {
  EngineError,
  type GenerateRequest,
  invalidInput,
  type Owner,
  type Preparation,
  type Prepared,
} from "../../protocol/Engine.ts"
import { GrammarCompiler } from "../compiler/GrammarCompiler.ts"
import type { ThoughtMarkers } from "../output/ThoughtFilter.ts"
import type { Vocabulary } from "../output/Vocabulary.ts"
import type { ChatPrompt } from "../prompt/ChatPrompt.ts"
import type { ShapeRequest } from "./Shapes.ts"
import { VocabularyTree } from "./VocabularyTree.ts"

/** Grammars whose masks are kept, each up to about 12 MB. A guess. */
const mostBound = 8
/**
 * Bytes of the grammars that are held for requests without a slot, besides those that are kept anyway. One that does not fit is
 * compiled again where it was forgotten meanwhile. A guess: usual grammars have less than 1 MB.
 */
const mostHeldBytes = 64 * 1024 * 1024

type Terms = Pick<GenerateRequest, "format" | "tools">

/** The grammar of a request that has no slot yet. */
class PreparedConstraint implements Prepared {
  readonly owner: Owner
  readonly key: string
  readonly release: () => void
  /** Undefined: it did not fit. */
  readonly bound: BoundGrammar | undefined

  constructor(owner: Owner, key: string, bound: BoundGrammar | undefined, release: () => void) {
    this.owner = owner
    this.key = key
    this.bound = bound
    this.release = release
  }
}

/** Of requests that were not prepared: engines without a gateway. */
const noOwner: Owner = { user: "", organization: "" }

/**
 * Work of a reply's constraint, see `Machine.work`: 5 s of processor time. Measured with a vocabulary of 150,000 tokens and 600 tokens of
 * which every one is masked, usual schemas take 1/18 to 1/90 of it, texts with a maximum of 20 to 300 characters a third.
 */
export const mostWork = 200_000_000

const tooMuchWork = ({ format }: Terms): EngineError =>
  invalidInput(
    format === undefined ? "tools" : "format",
    "takes too long to hold a reply to: it leaves too many ways of reading the same text; use fewer alternatives, or ones that begin differently",
  )

/** What constrained replies of a model share. */
interface Tables {
  readonly trie: TokenTrie
  readonly compiler: GrammarCompiler<ShapeRequest>
}

/** What a grammar is kept by: of its organization's own, so that no answer tells by its time which schemas others use. */
const keyOf = (shape: ShapeRequest, { organization }: Owner): string =>
  createHash("sha256")
    .update(`${organization}\n${JSON.stringify(shape)}`)
    .digest("base64")

/** The markers of the block that a reply begins with; undefined if it begins with its answer. */
export const leadingThought = (
  thought: ThoughtMarkers | undefined,
  thinkingTokens: number | undefined,
): ThoughtMarkers | undefined =>
  thinkingTokens !== undefined || thought?.startsInside === true ? thought : undefined

export class Constraints {
  /** Tree of the vocabulary, which every grammar needs. */
  readonly tree: VocabularyTree
  readonly #prompts: ChatPrompt
  readonly #bound = new LRUCache<string, BoundGrammar>({ max: mostBound })
  #tables: Tables | undefined
  #closed = false
  #heldBytes = 0

  constructor(vocabulary: Vocabulary, prompts: ChatPrompt) {
    this.tree = new VocabularyTree(vocabulary)
    this.#prompts = prompts
  }

  /** Compiles what a request without a slot demands of its replies, and keeps it until it is released. */
  prepare(terms: Preparation, owner: Owner): Effect.Effect<Prepared, EngineError> {
    return Effect.suspend(() => {
      const shape = this.#shapeOf(terms, this.#expectedThought(terms))
      const key = keyOf(shape, owner)
      return Effect.map(this.#compiled(shape, key, owner), (bound) => {
        const bytes = grammarBytes(bound.machine.grammar)
        if (this.#heldBytes + bytes > mostHeldBytes)
          return new PreparedConstraint(owner, key, undefined, () => {})
        this.#heldBytes += bytes
        return new PreparedConstraint(owner, key, bound, () => {
          this.#heldBytes -= bytes
        })
      })
    })
  }

  /**
   * Makes the constraint of each reply to a request; undefined if a reply may be anything. `thought`: the markers of the thinking
   * block that the reply begins with, if it has one. `prepared`: what `prepare` made for the request.
   */
  of(
    request: Terms,
    thought: ThoughtMarkers | undefined,
    prepared?: Prepared,
  ): Effect.Effect<(() => Constraint) | undefined, EngineError> {
    return Effect.suspend(() => {
      if (request.format === undefined && request.tools === undefined) return Effect.succeed(undefined)
      const own = prepared instanceof PreparedConstraint ? prepared : undefined
      const owner = own?.owner ?? noOwner
      const shape = this.#shapeOf(request, thought)
      const key = keyOf(shape, owner)
      const { bound } = own?.key === key ? own : { bound: undefined }
      const compiled = bound === undefined ? this.#compiled(shape, key, owner) : Effect.succeed(bound)
      const exceeded = () => tooMuchWork(request)
      return Effect.map(compiled, (made) => () => made.reply(mostWork, exceeded))
    })
  }

  #shapeOf({ format, tools }: Terms, thought: ThoughtMarkers | undefined): ShapeRequest {
    return {
      family: this.#prompts.tools.name,
      ...(format === undefined ? {} : { format }),
      ...(tools === undefined ? {} : { tools }),
      ...(thought === undefined ? {} : { thoughtEnd: thought.close }),
    }
  }

  /** As `leadingThought` of ReadRequest, before the prompt is read. */
  #expectedThought({ isChat, thinkingTokens }: Preparation): ThoughtMarkers | undefined {
    const thought = isChat ? this.#prompts.usualThought(thinkingTokens !== undefined) : undefined
    return leadingThought(thought, thinkingTokens)
  }

  #compiled(shape: ShapeRequest, key: string, owner: Owner): Effect.Effect<BoundGrammar, EngineError> {
    const known = this.#bound.get(key)
    if (known !== undefined) return Effect.succeed(known)
    return Effect.flatMap(this.#opened, (tables) => this.#compiledWith(tables, shape, key, owner))
  }

  #compiledWith(
    { compiler, trie }: Tables,
    shape: ShapeRequest,
    key: string,
    owner: Owner,
  ): Effect.Effect<BoundGrammar, EngineError> {
    return compiler.compile(shape, owner).pipe(
      Effect.mapError(
        ({ detail, field, retryAfterMs }) =>
          new EngineError({
            reason: retryAfterMs === undefined ? "InvalidInput" : "Limited",
            field: field === "" ? (shape.format === undefined ? "tools" : "format") : field,
            detail,
            ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
          }),
      ),
      Effect.map((grammar) => {
        const bound =
          this.#bound.get(key) ?? new BoundGrammar(grammar, trie, (text) => this.#prompts.markerTokens(text))
        this.#bound.set(key, bound)
        return bound
      }),
    )
  }

  /** Drops what can be computed again. */
  clear(): void {
    this.#bound.clear()
  }

  /** Ends the thread. */
  close(): void {
    this.#closed = true
    this.#tables?.compiler.close()
  }

  get #opened(): Effect.Effect<Tables> {
    return Effect.suspend(() =>
      this.#tables === undefined
        ? Effect.map(
            Effect.promise(() => this.tree.get()),
            (trie) => this.#openedWith(trie),
          )
        : Effect.succeed(this.#tables),
    )
  }

  #openedWith(trie: TokenTrie): Tables {
    const program = new URL("./shapesMain.ts", import.meta.url)
    this.#tables ??= { trie, compiler: new GrammarCompiler({ program, singleBytes: trie.singleBytes }) }
    if (this.#closed) this.#tables.compiler.close()
    return this.#tables
  }
}
