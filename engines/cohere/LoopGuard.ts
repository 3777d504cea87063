// Detects a decoder that repeats itself. Checked after every token of the Cohere decoding loop, because no
// temperature fallback is published for this family. Pure.

/** Shortest repeated run of tokens that counts as a loop: from the published recipe. */
const shortest = 8
/** Longest repeated run that is detected. A guess: two sentences. */
const longestLoop = 64

/** Tokens to drop from the end when the last run repeats the one before it; 0 when it does not. */
export const repeatedTail = (tokens: ReadonlyArray<number>): number => {
  const longest = Math.min(longestLoop, Math.floor(tokens.length / 2))
  for (let run = shortest; run <= longest; run++) {
    let same = 0
    while (same < run && tokens.at(-1 - same) === tokens.at(-1 - same - run)) same++
    if (same === run) return run
  }
  return 0
}
