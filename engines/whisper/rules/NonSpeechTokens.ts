// The tokens a transcript should not contain: brackets, quotation marks in front of words, music notes, speaker
// marks. For models whose configuration requests the standard list (an id of −1) instead of
// listing ids. Source: the reference tokenizer's description of that list.

const singleCharacters = Array.from('"#()*+/:;<=>@[\\]^_`{|}~「」『』')
const runs = [..."<< >> <<< >>> -- --- -( -[ (' (\" (( )) ((( ))) [[ ]] {{ }} ♪♪ ♪♪♪".split(" ")]
/** Forbidden by their first token even if the vocabulary has no single token for them. */
const musicCharacters = Array.from("♩♪♫♬♭♮♯")
/** A hyphen or an apostrophe is allowed inside a word, not at its start. */
const wordStarts = [" -", " '"]

export const nonSpeechTokens = (encode: (text: string) => ReadonlyArray<number>): ReadonlyArray<number> => {
  const ids = new Set<number>()
  for (const start of wordStarts) {
    const tokens = encode(start)
    // In a byte alphabet the first of several tokens is the bare space, which must stay allowed.
    if (tokens.length === 1) ids.add(tokens[0]!)
  }
  for (const mark of [...singleCharacters, ...runs, ...musicCharacters]) {
    for (const text of [mark, ` ${mark}`]) {
      const tokens = encode(text)
      const single = tokens.length === 1
      const music = musicCharacters.includes(mark) && tokens.length > 1 && text === mark
      if (single || music) ids.add(tokens[0]!)
    }
  }
  return [...ids].sort((a, b) => a - b)
}
