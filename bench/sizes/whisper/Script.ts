// The text that a generated Whisper produces, and how its weights produce it. Random weights alone repeat a token until the
// context is full; these end after plausible lengths. How it works:
//
// - The text is a script: five made-up words and a pair of timestamps every two seconds, the same in every window. A
//   window of 30 s of speech gives 105 tokens, one of 4 s 14.
// - Each token of the script is a node. Two dimensions of the decoder's width belong to it: "here" is set by the
//   token's embedding row, "next" asks for the token, because output rows are the embedding rows. All other parts of
//   the network are random and leave these dimensions alone.
// - The feed-forward block of the decoder's first layer reads "here" of a node, clears its two dimensions and sets
//   "next" of what follows. GELU(z) - GELU(-z) = z makes it exact. Where the timestamp rules forbid the first choice, a
//   second and weaker one is there: behind a closing timestamp comes the same timestamp again, then the next word.
// - In the second decoder layer one head of the cross-attention looks for the last frame that carries sound (see
//   Encoder.ts), and lowers the end token's "next" by how late that is. At the end of each two seconds the script
//   raises it by how late it is there: so the end token wins at the first one behind the sound.
import type { Vocabulary } from "./Vocabulary.ts"

export const SEGMENT_SECONDS = 2
const SEGMENTS = 15
const WORDS_A_SEGMENT = 5

/** Strengths with which a node asks for what follows: first choice, and what is left where the rules forbid it. */
const FIRST = 1
const SECOND = 0.6
/** Change of the end token's strength for a second of difference between script and sound. */
export const END_PER_SECOND = 0.06
/** The sound's share is counted from here: less sound raises the end token everywhere, but never to a first choice. */
export const MIDDLE_SECONDS = 8

export interface Follower {
  readonly node: number
  readonly strength: number
}

export interface ScriptNode {
  readonly token: number
  readonly followers: ReadonlyArray<Follower>
}

export interface Script {
  readonly nodes: ReadonlyArray<ScriptNode>
  /** The dimension that says that the node's token was read; `nodes.length` of them from 0. */
  readonly here: (node: number) => number
  /** The dimension that asks for the node's token. */
  readonly next: (node: number) => number
  /** Dimensions that only the script writes: those from 0 to here. */
  readonly reserved: number
  readonly end: number
}

export const scriptOf = (vocabulary: Vocabulary): Script => {
  const tokens = [
    "<|endoftext|>",
    "<|startoftranscript|>",
    "<|en|>",
    "<|transcribe|>",
    "<|notimestamps|>",
    "<|0.00|>",
  ].map(vocabulary.idOf)
  // Their numbers; of the others nothing is asked but what follows them.
  const [end, language, transcribe, zero] = [0, 2, 3, 5]
  // Words of three syllables stand last; these are far apart, so that they look different.
  const stride = Math.floor(vocabulary.words.length / 4 / (SEGMENTS * WORDS_A_SEGMENT))
  const words = Array.from(
    { length: SEGMENTS * WORDS_A_SEGMENT },
    (_, i) => vocabulary.words.length - 1 - i * stride,
  )
  const wordNode = (segment: number, word: number) => zero + 1 + segment * WORDS_A_SEGMENT + word
  const timeNode = (segment: number) => zero + 1 + words.length + segment
  const times = Array.from({ length: SEGMENTS }, (_, i) =>
    vocabulary.idOf(`<|${((i + 1) * SEGMENT_SECONDS).toFixed(2)}|>`),
  )
  const only = (node: number): ReadonlyArray<Follower> => [{ node, strength: FIRST }]
  const endAfter = (segment: number): Follower => ({
    node: end,
    strength: SECOND + END_PER_SECOND * ((segment + 1) * SEGMENT_SECONDS - MIDDLE_SECONDS),
  })
  const afterWord = (segment: number, word: number): ReadonlyArray<Follower> => {
    if (word < WORDS_A_SEGMENT - 1) return only(wordNode(segment, word + 1))
    const onwards = segment < SEGMENTS - 1 ? [{ node: wordNode(segment + 1, 0), strength: SECOND }] : []
    return [...only(timeNode(segment)), ...onwards, endAfter(segment)]
  }
  const lastSeconds = SEGMENTS * SEGMENT_SECONDS
  const afterTime = (segment: number): ReadonlyArray<Follower> => {
    if (segment === SEGMENTS - 1) {
      return [{ node: end, strength: FIRST + END_PER_SECOND * (lastSeconds - MIDDLE_SECONDS) }]
    }
    return [
      ...only(wordNode(segment + 1, 0)),
      { node: timeNode(segment), strength: SECOND },
      endAfter(segment),
    ]
  }
  const followers: ReadonlyArray<ReadonlyArray<Follower>> = [
    only(end),
    only(language),
    only(transcribe),
    only(zero),
    // Behind <|notimestamps|> and <|0.00|>.
    only(wordNode(0, 0)),
    only(wordNode(0, 0)),
    ...words.map((_, i) => afterWord(Math.floor(i / WORDS_A_SEGMENT), i % WORDS_A_SEGMENT)),
    ...times.map((_, segment) => afterTime(segment)),
  ]
  const nodes = [...tokens, ...words, ...times].map((token, i) => ({ token, followers: followers[i]! }))
  return {
    nodes,
    here: (node) => node,
    next: (node) => nodes.length + node,
    reserved: 2 * nodes.length,
    end: end,
  }
}
