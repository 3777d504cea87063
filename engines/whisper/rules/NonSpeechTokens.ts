// The tokens a transcript should not contain: brackets, quotation marks in front of words, music notes, speaker
// marks. Used while loading, for models whose configuration asks for the standard list (an id of −1) instead of
// listing ids. Source: the reference tokenizer's description of that list.

const SINGLE = Array.from('"#()*+/:;<=>@[\\]^_`{|}~「」『』')
const RUNS = [..."<< >> <<< >>> -- --- -( -[ (' (\" (( )) ((( ))) [[ ]] {{ }} ♪♪ ♪♪♪".split(" ")]
/** Forbidden by their first token even where the vocabulary has no single token for them. */
const MUSIC = Array.from("♩♪♫♬♭♮♯")
/** A hyphen or an apostrophe is fine inside a word, not at the start of one. */
const WORD_STARTS = [" -", " '"]

export const nonSpeechTokens = (encode: (text: string) => ReadonlyArray<number>): ReadonlyArray<number> => {
  const ids = new Set<number>()
  for (const start of WORD_STARTS) {
    const tokens = encode(start)
    // In an alphabet without merges the first token is the bare space.
    if (tokens.length === 1) ids.add(tokens[0]!)
  }
  for (const mark of [...SINGLE, ...RUNS, ...MUSIC]) {
    for (const text of [mark, ` ${mark}`]) {
      const tokens = encode(text)
      const single = tokens.length === 1
      const music = MUSIC.includes(mark) && tokens.length > 1 && text === mark
      if (single || music) ids.add(tokens[0]!)
    }
  }
  return [...ids].sort((a, b) => a - b)
}
