// The text that a generated Whisper model produces, and how its weights produce it. With random weights alone a model repeats
// one token until its context is full. These weights end the text after a plausible length:
//
// - The text is a script: five made-up words and a pair of timestamps every two seconds, the same in every window. A
//   window of 30 s of speech gives 105 tokens; one of 4 s gives 14.
// - Each token of the script is a node with two dimensions of the decoder's width. The token's embedding row sets both. The
//   input dimension says that the token was read. The output dimension raises the token's logit, because the rows of the
//   output matrix are the embedding rows. All other weights of the network are random and do not write these dimensions.
// - The feed-forward block of the decoder's first layer reads the input dimension of a node, clears both dimensions and sets
//   the output dimensions of its followers. It is exact, because GELU(z) - GELU(-z) = z. Where the timestamp rules forbid
//   the first follower, the second and weaker one is drawn: after a closing timestamp the same timestamp again, then the next
//   word.
// - In the second decoder layer one head of the cross-attention finds the last frame with sound (see Encoder.ts) and lowers
//   the output dimension of the end token in proportion to that frame's time. At the end of each two seconds the script raises
//   it in proportion to the script's time. So the end token is drawn at the first such place after the sound.
import type { Vocabulary } from "./Vocabulary.ts"

const segmentSeconds = 2
const segments = 15
const wordsASegment = 5

/** Values of the output dimensions that a node sets: of its first follower, and of the one for when the rules forbid the first. */
const first = 1
const second = 0.6
/** Change of the end token's strength for each second of difference between script and sound. */
export const endPerSecond = 0.06
/** Sound shorter than this raises the end token everywhere, longer sound lowers it; it never reaches the strength of a first follower. */
export const middleSeconds = 8

interface Follower {
  readonly node: number
  readonly strength: number
}

export interface ScriptNode {
  readonly token: number
  readonly followers: ReadonlyArray<Follower>
}

export interface Script {
  readonly nodes: ReadonlyArray<ScriptNode>
  /** The dimension that is set when the node's token was read: 0 to `nodes.length` - 1. */
  readonly inputDimension: (node: number) => number
  /** The dimension that raises the logit of the node's token. */
  readonly outputDimension: (node: number) => number
  /** Number of dimensions that only the script writes; they are the first ones. */
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
  // Indices of those nodes that followers refer to by name.
  const [end, language, transcribe, zero] = [0, 2, 3, 5]
  // The last words of the vocabulary have three syllables. Taken at large intervals, they look different from each other.
  const stride = Math.floor(vocabulary.words.length / 4 / (segments * wordsASegment))
  const words = Array.from(
    { length: segments * wordsASegment },
    (_, i) => vocabulary.words.length - 1 - i * stride,
  )
  const wordNode = (segment: number, word: number) => zero + 1 + segment * wordsASegment + word
  const timeNode = (segment: number) => zero + 1 + words.length + segment
  const times = Array.from({ length: segments }, (_, i) =>
    vocabulary.idOf(`<|${((i + 1) * segmentSeconds).toFixed(2)}|>`),
  )
  const only = (node: number): ReadonlyArray<Follower> => [{ node, strength: first }]
  const endAfter = (segment: number): Follower => ({
    node: end,
    strength: second + endPerSecond * ((segment + 1) * segmentSeconds - middleSeconds),
  })
  const afterWord = (segment: number, word: number): ReadonlyArray<Follower> => {
    if (word < wordsASegment - 1) return only(wordNode(segment, word + 1))
    const nextWord = segment < segments - 1 ? [{ node: wordNode(segment + 1, 0), strength: second }] : []
    return [...only(timeNode(segment)), ...nextWord, endAfter(segment)]
  }
  const lastSeconds = segments * segmentSeconds
  const afterTime = (segment: number): ReadonlyArray<Follower> => {
    if (segment === segments - 1) {
      return [{ node: end, strength: first + endPerSecond * (lastSeconds - middleSeconds) }]
    }
    return [
      ...only(wordNode(segment + 1, 0)),
      { node: timeNode(segment), strength: second },
      endAfter(segment),
    ]
  }
  const followers: ReadonlyArray<ReadonlyArray<Follower>> = [
    only(end),
    only(language),
    only(transcribe),
    only(zero),
    // After <|notimestamps|> and <|0.00|>.
    only(wordNode(0, 0)),
    only(wordNode(0, 0)),
    ...words.map((_, i) => afterWord(Math.floor(i / wordsASegment), i % wordsASegment)),
    ...times.map((_, segment) => afterTime(segment)),
  ]
  const nodes = [...tokens, ...words, ...times].map((token, i) => ({ token, followers: followers[i]! }))
  return {
    nodes,
    inputDimension: (node) => node,
    outputDimension: (node) => nodes.length + node,
    reserved: 2 * nodes.length,
    end,
  }
}
