// What a language model's expectation of the end of a message tells about whether a speaker has finished. Pure.
//
// Models differ in how probable they take an end at all: one that was trained with short questions ends everywhere, one that was
// trained with written ones hardly anywhere. So only the difference counts between the end of the words and the ends of the words
// before, in the same message and by the same model.

/** Marks that a recogniser writes behind every text, also behind half a sentence. */
const lastMarks = /[\s.,;:!?…。、，？！؟।"”’'»\-–—]+$/u

/** A transcript as a message that may go on: without the marks behind it. */
export const unfinished = (transcript: string): string => transcript.trim().replace(lastMarks, "")

/** Least log probability, and most difference in either direction, that counts. Guesses: beyond them models differ most. */
const least = -12
const mostRise = 8

/**
 * By how much the end of a message is more probable behind its last word than behind the ones before, on the mean. `stops`: natural
 * logarithms, behind each of its last words. Undefined where there is but one word, or a value is no number.
 */
export const riseOf = (stops: ReadonlyArray<number>): number | undefined => {
  const values = stops.map((value) => Math.max(least, Math.min(0, value)))
  const last = values.at(-1)
  if (last === undefined || values.length < 2 || values.some(Number.isNaN)) return undefined
  const mean = values.slice(0, -1).reduce((sum, value) => sum + value, 0) / (values.length - 1)
  return Math.max(-mostRise, Math.min(mostRise, last - mean))
}
