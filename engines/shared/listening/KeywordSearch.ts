// Follows the phrases that a request names while a decoder chooses its tokens. Pure: it knows scores and tokens, no model.
//
// Greedy decoding takes the token of the highest score. Where another token goes on in a phrase, and its score is not far below, the search
// takes that one: a trial begins. The trial goes on with the phrase's best token as long as the scores that it gave up, added, stay
// below a limit that grows with the characters of the phrase so far. At the end of the phrase the trial has succeeded. Where it
// fails, everything is given back: the caller decodes again from the place where the trial began, without this token there.
//
// So a phrase is written only as a whole, and only if the model finds it nearly as probable as its own text.
import { KeywordGraph } from "./KeywordGraph.ts"

/**
 * Scores (natural logarithms) that a trial may give up for each character of the phrase so far; less at its first one, where most trials
 * would begin that fail. Chosen with names that the evaluation does not have.
 */
const limitPerCharacter = 2
const lessAtFirst = 1
/** Scores that may be given up to end the word behind a phrase. Chosen in the same way. */
const endLimit = 4
/** Scores that a token of a trial may give up against blank (transducers): it is then taken a frame or two earlier. A guess. */
const blankLimit = 1

const limitOf = (characters: number): number => limitPerCharacter * characters - lessAtFirst

/** Where the text stands in the phrases. Immutable. */
export interface Following {
  /** Nodes that the end of the text leads to. The root always counts besides. */
  readonly nodes: ReadonlyArray<number>
  /** A phrase that is written against the highest scores. */
  readonly trial: { readonly node: number; readonly spent: number } | undefined
}

interface Chosen {
  readonly token: number
  /** How far its score is below the highest one; 0 if it is the highest. */
  readonly gap: number
  readonly following: Following
  /** A trial begins with this token. */
  readonly opens: boolean
}

/** What a token is: part of the text, nothing yet (blank of transducers), or a mark behind which a text begins anew. */
export type KindOf = (token: number) => "text" | "blank" | "mark"

export class KeywordSearch {
  readonly #graph: KeywordGraph
  readonly #kindOf: KindOf

  constructor(graph: KeywordGraph, kindOf: KindOf) {
    this.#graph = graph
    this.#kindOf = kindOf
  }

  /** At the beginning of a text. */
  get begin(): Following {
    return { nodes: [this.#graph.start], trial: undefined }
  }

  /** Whether a trial stands at the end of its phrase. */
  isComplete({ trial }: Following): boolean {
    return trial !== undefined && this.#graph.isEnd(trial.node)
  }

  /** Whether a phrase that ends here may be followed by this token: a word may not go on. */
  #mayFollow(node: number, token: number): boolean {
    return this.#graph.isEndAnywhere(node) || !this.#graph.spellings.goesOn(token)
  }

  /**
   * The next token. `best` has the highest of the scores; -Infinity forbids a token. `failed`: tokens with which a trial began here and
   * failed. Undefined: the trial has failed.
   */
  choose(
    following: Following,
    scores: Float32Array,
    best: number,
    failed: ReadonlyArray<number>,
  ): Chosen | undefined {
    const { trial } = following
    const isBlank = this.#kindOf(best) === "blank"
    if (trial === undefined) {
      return isBlank
        ? { token: best, gap: 0, following, opens: false }
        : this.#idle(following.nodes, scores, best, failed)
    }
    const { node } = trial
    const isEnd = this.#graph.isEnd(node)
    if (isEnd && !isBlank && this.#mayFollow(node, best)) return this.#idle([node], scores, best, failed)
    const step = this.#best([node], scores, [])
    const gap = step === undefined ? Number.POSITIVE_INFINITY : scores[best]! - scores[step.token]!
    if (isBlank && !(gap <= blankLimit)) return { token: best, gap: 0, following, opens: false }
    const spent = trial.spent + gap
    if (step === undefined || !(spent <= limitOf(this.#graph.charactersOf(step.node))))
      return isEnd ? this.#ended(node, trial.spent, scores, best) : undefined
    return {
      token: step.token,
      gap,
      following: { nodes: [], trial: { node: step.node, spent } },
      opens: false,
    }
  }

  #idle(
    nodes: ReadonlyArray<number>,
    scores: Float32Array,
    best: number,
    failed: ReadonlyArray<number>,
  ): Chosen {
    const after =
      this.#kindOf(best) === "mark"
        ? [this.#graph.start]
        : [...nodes, KeywordGraph.root].flatMap((node) => this.#graph.after(node, best) ?? [])
    const plain = { token: best, gap: 0, following: { nodes: after, trial: undefined }, opens: false }
    // The text agrees with a phrase already.
    if (after.some((node) => this.#graph.charactersOf(node) > 1)) return plain
    // One trial at a place: a second one seldom succeeds where the best has failed.
    const step = failed.length > 0 ? undefined : this.#best([...nodes, KeywordGraph.root], scores, [best])
    const gap = step === undefined ? Number.POSITIVE_INFINITY : scores[best]! - scores[step.token]!
    if (step !== undefined && gap <= limitOf(this.#graph.charactersOf(step.node)))
      return {
        token: step.token,
        gap,
        following: { nodes: [], trial: { node: step.node, spent: gap } },
        opens: true,
      }
    // The text has a phrase, and goes on with letters.
    const end = nodes.find((node) => this.#graph.isEnd(node) && !this.#mayFollow(node, best))
    return (end === undefined ? undefined : this.#ended(end, 0, scores, best)) ?? plain
  }

  /** The best token that ends the word behind a phrase, although the best of all goes on with letters. */
  #ended(node: number, spent: number, scores: Float32Array, best: number): Chosen | undefined {
    let token: number | undefined
    for (let other = 0; other < scores.length; other++) {
      if (this.#graph.spellings.goesOn(other) || this.#kindOf(other) === "blank") continue
      if (token === undefined || scores[other]! > scores[token]!) token = other
    }
    if (token === undefined) return undefined
    const gap = scores[best]! - scores[token]!
    if (!(gap <= endLimit && spent + gap <= limitOf(this.#graph.charactersOf(node)))) return undefined
    const isMark = this.#kindOf(token) === "mark"
    const after = isMark
      ? [this.#graph.start]
      : [node, KeywordGraph.root].flatMap((from) => this.#graph.after(from, token) ?? [])
    return { token, gap, following: { nodes: after, trial: undefined }, opens: false }
  }

  #best(nodes: ReadonlyArray<number>, scores: Float32Array, not: ReadonlyArray<number>) {
    let found: { readonly token: number; readonly node: number } | undefined
    for (const node of nodes)
      for (const step of this.#graph.stepsFrom(node))
        if (!not.includes(step.token) && (found === undefined || scores[step.token]! > scores[found.token]!))
          found = step
    return found
  }
}
