// Texts for the measurements. No two prompts share a beginning, so that a model's cache never contains part of one.
// Pure.

const words = (
  "time year people way day man thing woman life child world school state family student group country problem hand part " +
  "place case week company system program question work government number night point home water room mother area money " +
  "story fact month lot right study book eye job word business issue side kind head house service friend father power hour " +
  "game line end member law car city community name president team minute idea body information back parent face others " +
  "level office door health person art war history party result change morning reason research girl guy moment air teacher"
).split(" ")

/**
 * A small pseudo-random generator of numbers below 2^32 that depend only on `tag` (FNV-1a, then a linear congruence).
 */
const numbersOf = (tag: string): (() => number) => {
  let state = 2_166_136_261
  for (const character of tag) state = Math.imul(state ^ character.charCodeAt(0), 16_777_619) >>> 0
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state
  }
}

/** Words of about `characters` characters. The same tag gives the same text, another tag another beginning. */
export const promptOf = (tag: string, characters: number): string => {
  const next = numbersOf(tag)
  let text = String(next() % 100_000)
  while (text.length < characters) text += ` ${words[(next() >>> 8) % words.length]}`
  return text
}

/** A sentence as voice applications speak it between two questions. */
export const sentence = "The birch canoe slid on the smooth planks."

/** Sentences of nearly `characters` characters, at least one sentence. */
export const speechOf = (characters: number): string => {
  const sentences = [
    sentence,
    "Glue the sheet to the dark blue background.",
    "It is easy to tell the depth of a well.",
    "These days a chicken leg is a rare dish.",
    "The box was thrown beside the parked truck.",
  ]
  let text = sentence
  for (let at = 1; ; at++) {
    const more = `${text} ${sentences[at % sentences.length]}`
    if (more.length > characters) return text
    text = more
  }
}
