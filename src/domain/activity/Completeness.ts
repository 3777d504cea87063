// How probable it is that a speaker has finished: from the words so far and from how their end sounds. Pure. The weights are trained
// by models/train/turns and read by src/audio/SpeechWeights.ts.
import { endingWords, WORD_WEIGHTS } from "./EndingWords.ts"
import { PROSODY_VALUES } from "./Prosody.ts"

/** Of the layer between. */
const width = 16
/** The words' value and the values of the sound. */
const inputs = 1 + PROSODY_VALUES

const shapes = {
  words: WORD_WEIGHTS,
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

/** 0 to 1 for words and the sound of their end (Prosody); undefined where there is no word. */
export const completeness = (
  weights: CompletenessWeights,
  text: string,
  ending: Float32Array,
): number | undefined => {
  const found = endingWords(text)
  if (found === undefined) return undefined
  let words = weights["words.bias"][0]!
  for (const number of found.kinds) words += weights.words[number]!
  for (const number of found.words) words += weights.words[number]!
  const x = Math.max(-mostOfWords, Math.min(mostOfWords, words))
  let logit = weights["out.bias"][0]!
  for (let row = 0; row < width; row++) {
    const at = row * inputs
    let sum = weights["front.bias"][row]! + weights["front.weight"][at]! * x
    for (let i = 0; i < PROSODY_VALUES; i++) sum += weights["front.weight"][at + 1 + i]! * ending[i]!
    logit += weights["out.weight"][row]! * Math.tanh(sum)
  }
  return 1 / (1 + Math.exp(-logit))
}
