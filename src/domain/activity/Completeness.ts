// How probable it is that a speaker has finished: from the words so far and from how their end sounds. Pure. The weights are trained
// by models/train/turns and read by src/audio/SpeechWeights.ts.
import { endingWords, wordWeights } from "./EndingWords.ts"
import { prosodyValues } from "./Prosody.ts"

/** Of the layer between. */
const width = 16
/** The words' value and the values of the sound. */
const inputs = 1 + prosodyValues

const shapes = {
  words: wordWeights,
  "words.bias": 1,
  "front.weight": width * inputs,
  "front.bias": width,
  "out.weight": width,
  "out.bias": 1,
}

/** `words`: one for each number of EndingWords. Matrices in rows of their outputs. */
export type CompletenessWeights = Readonly<Record<keyof typeof shapes, Float32Array>>

/** Checks names and sizes; fails with what is wrong. */
export const completenessWeightsOf = (tensors: ReadonlyMap<string, Float32Array>): CompletenessWeights => {
  for (const [name, size] of Object.entries(shapes)) {
    const found = tensors.get(name)?.length
    if (found !== size) throw new Error(`tensor ${name}: ${found ?? "no"} values where ${size} are expected`)
  }
  return Object.fromEntries(tensors) as unknown as CompletenessWeights
}

/** The words' value counts no more than this in either direction: they are often wrong. */
const mostOfWords = 6

/** The value of the words, which may lie beyond `mostOfWords`; undefined where there is none. */
const valueOf = (weights: CompletenessWeights, text: string): number | undefined => {
  const found = endingWords(text)
  if (found === undefined) return undefined
  let words = weights["words.bias"][0]!
  for (const number of found.kinds) words += weights.words[number]!
  for (const number of found.words) words += weights.words[number]!
  return words
}

/** The log-odds of completeness for a value of the words, 0 where it is not known, and the sound of their end. */
const logOddsOf = (weights: CompletenessWeights, words: number, ending: Float32Array): number => {
  const x = Math.max(-mostOfWords, Math.min(mostOfWords, words))
  let logit = weights["out.bias"][0]!
  for (let row = 0; row < width; row++) {
    const at = row * inputs
    let sum = weights["front.bias"][row]! + weights["front.weight"][at]! * x
    for (let i = 0; i < prosodyValues; i++) sum += weights["front.weight"][at + 1 + i]! * ending[i]!
    logit += weights["out.weight"][row]! * Math.tanh(sum)
  }
  return logit
}

const probabilityOf = (logOdds: number): number => 1 / (1 + Math.exp(-logOdds))

/** 0 to 1 for words and the sound of their end (Prosody); undefined where there is no word. */
export const completeness = (
  weights: CompletenessWeights,
  text: string,
  ending: Float32Array,
): number | undefined => {
  const words = valueOf(weights, text)
  return words === undefined ? undefined : probabilityOf(logOddsOf(weights, words, ending))
}

/**
 * The same with what a language model expects: by how much the end of the message has become more probable (`riseOf` of MessageEnds).
 * `knowsWords`: whether the text is in the language of the weights; otherwise its words are not looked at.
 */
export const completenessWithRise = (
  weights: CompletenessWeights,
  rises: RiseWeights,
  { ending, knowsWords, rise, text, weight }: HeardEnd,
): number | undefined => {
  const words = valueOf(weights, text)
  if (words === undefined) return undefined
  const [slope, shift] = knowsWords ? rises.words : rises.sound
  return probabilityOf(logOddsOf(weights, knowsWords ? words : 0, ending) + weight * (slope! * rise + shift!))
}

interface HeardEnd {
  readonly text: string
  readonly ending: Float32Array
  readonly rise: number
  readonly knowsWords: boolean
  /** How much the rise counts; 1: as was learned. */
  readonly weight: number
}

/** Of a rise, and a bias: beside words and sound, and beside the sound alone. */
export interface RiseWeights {
  readonly words: Float32Array
  readonly sound: Float32Array
}

/** Checks names and sizes; fails with what is wrong. */
export const riseWeightsOf = (tensors: ReadonlyMap<string, Float32Array>): RiseWeights => {
  const [words, sound] = [tensors.get("words"), tensors.get("sound")]
  if (words?.length !== 2 || sound?.length !== 2)
    throw new Error(
      `tensors words, sound: ${words?.length ?? "no"}, ${sound?.length ?? "no"} values where 2 are expected`,
    )
  return { words, sound }
}
