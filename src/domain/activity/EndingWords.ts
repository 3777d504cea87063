// What the last words of a text tell about whether it is complete: "I would like to" is not. The words and their kinds become numbers
// of a table of weights. Pure. Punctuation is not looked at: a recogniser writes a full stop wherever the audio ends.

/** Weights of the table. Different words may share one. */
export const wordWeights = 16_384

/** Words that say how a sentence is built: each is a kind of its own. */
const functionWords = new Set(
  `i you he she it we they me him her us them my your his its our their mine yours this that these those the a an some any no every each
  all both few many much more most another other such what which who whom whose when where why how in on at by for from to of with without
  about across above after against along among around before behind below beside between during into near off onto out over since through
  toward under until up down upon within and but or nor so yet because if although though while unless than as like is am are was were be
  been being do does did have has had will would can could shall should may might must not don't doesn't didn't isn't aren't wasn't weren't
  can't couldn't won't wouldn't shouldn't haven't hasn't hadn't i'm you're he's she's it's we're they're i've you've we've they've i'll
  you'll he'll she'll it'll we'll they'll i'd you'd he'd she'd we'd they'd that's what's where's who's how's there's here's let's let there
  here please thanks yes no okay very really quite too also just only even still already then now maybe well um uh er hmm`.split(
    /\s+/,
  ),
)

const kindOf = (word: string): string => {
  if (functionWords.has(word)) return word
  if (/^[0-9]/.test(word)) return "#"
  return `_${/(ing|ed|ly|'s|s|er|est|tion)$/.exec(word)?.[0] ?? ""}`
}

/** FNV-1a of the UTF-16 units. */
const numberOf = (feature: string): number => {
  let hash = 0x811c9dc5
  for (let i = 0; i < feature.length; i++) hash = Math.imul(hash ^ feature.charCodeAt(i), 0x01000193)
  return (hash ^ (hash >>> 15)) & (wordWeights - 1)
}

/** Longer texts are judged by their end. */
const longestText = 400

const countOf = (words: number): string =>
  words < 5 ? `${words}` : words < 8 ? "5" : words < 12 ? "8" : "12"

interface EndingWords {
  /** Of the kinds of words. */
  readonly kinds: ReadonlyArray<number>
  /** Of the words themselves. */
  readonly words: ReadonlyArray<number>
}

/** Numbers in the table of weights; undefined where the text has no word. */
export const endingWords = (text: string): EndingWords | undefined => {
  const words = text
    .slice(-longestText)
    .toLowerCase()
    .replaceAll("’", "'")
    .match(/[\p{L}\p{N}][\p{L}\p{N}']*/gu)
  if (words === null) return undefined
  const [last = "", second = "^", third = "^", fourth = "^", fifth = "^"] = words.toReversed()
  const [one, two, three, four, five] = [last, second, third, fourth, fifth].map(kindOf)
  const first = words.length > 6 ? "" : kindOf(words[0]!)
  const count = countOf(words.length)
  return {
    kinds: [
      `1 ${one}`,
      `2 ${two} ${one}`,
      `3 ${three} ${two} ${one}`,
      `4 ${four} ${three} ${two} ${one}`,
      `5 ${five} ${four} ${three} ${two} ${one}`,
      `n ${count}`,
      `m ${count} ${one}`,
      `o ${count} ${two} ${one}`,
      `f ${first} ${count}`,
      `g ${first} ${one}`,
    ].map(numberOf),
    words: [`w ${last}`, `x ${second} ${last}`, `s ${last.slice(-3)}`, `y ${three} ${two} ${last}`].map(
      numberOf,
    ),
  }
}
