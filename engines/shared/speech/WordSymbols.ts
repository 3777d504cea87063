// Which word each symbol of a fragment belongs to. eSpeak separates most words by a space, but joins some ("of the" → "ʌvðə")
// and divides others, so where the numbers differ, letters and symbols are aligned by their sounds. Pure.

/** Phonemes of one clause, and the words that they are of, in the same order. A run of marks has no words. */
export interface Fragment {
  readonly phonemes: string
  /** Spoken words, separated by white space. */
  readonly words: string
}

/** Letters that may be written for a symbol. What is not here is aligned with nothing. Vowels: any for any. */
const consonants: Readonly<Record<string, string>> = Object.fromEntries(
  (
    "b=b d=dt f=fpg h=hw j=yiue k=kcqx l=l m=m n=nk p=p s=scz t=td v=vf " +
    "w=wuo z=zsx ɡ=gx ŋ=n ɹ=r ɾ=td ʃ=stc ʒ=sgz ʧ=ct ʤ=jg θ=t ð=t ɫ=l"
  )
    .split(" ")
    .map((row) => row.split("=")),
)
const vowelLetters = "aeiouy"
const isVowel = (symbol: string): boolean =>
  consonants[symbol] === undefined && /[\p{L}ː]/u.test(symbol) && !soundless.has(symbol)

/** Stress and length: no letter stands for them. */
const soundless = new Set(["ˈ", "ˌ", "ː", "ʲ", "ʰ"])

/** Scores of an alignment, guesses: only their order matters. */
const same = 3
const vowels = 1.5
const spaces = 3
const different = -2
const silentLetter = -0.4
const unwritten = -0.6

const plain = (text: string): string => text.normalize("NFD").replace(/\p{M}/gu, "").toLowerCase()

const score = (letter: string, symbol: string): number => {
  if (letter === " " || symbol === " ") return letter === symbol ? spaces : different
  const written = consonants[symbol]
  if (written !== undefined) return written.includes(letter) ? same : different
  return vowelLetters.includes(letter) && isVowel(symbol) ? vowels : different
}

/** The alignment of letters and symbols with the highest score: the index of each symbol's letter, −1 for none. */
const aligned = (letters: ReadonlyArray<string>, symbols: ReadonlyArray<string>): Int32Array => {
  const width = symbols.length + 1
  const best = new Float32Array((letters.length + 1) * width)
  const step = (letter: number, symbol: number, from: "both" | "letter" | "symbol"): number => {
    if (from === "both")
      return best[(letter - 1) * width + symbol - 1]! + score(letters[letter - 1]!, symbols[symbol - 1]!)
    if (from === "letter") {
      // A space that is not spoken costs nothing: two words were joined.
      return best[(letter - 1) * width + symbol]! + (letters[letter - 1] === " " ? 0 : silentLetter)
    }
    return best[letter * width + symbol - 1]! + (soundless.has(symbols[symbol - 1]!) ? 0 : unwritten)
  }
  for (let letter = 0; letter <= letters.length; letter++) {
    for (let symbol = 0; symbol <= symbols.length; symbol++) {
      if (letter === 0 && symbol === 0) continue
      let most = Number.NEGATIVE_INFINITY
      if (letter > 0 && symbol > 0) most = step(letter, symbol, "both")
      if (letter > 0) most = Math.max(most, step(letter, symbol, "letter"))
      if (symbol > 0) most = Math.max(most, step(letter, symbol, "symbol"))
      best[letter * width + symbol] = most
    }
  }
  const of = new Int32Array(symbols.length).fill(-1)
  let letter = letters.length
  let symbol = symbols.length
  while (letter > 0 && symbol > 0) {
    const here = best[letter * width + symbol]!
    if (here === Math.fround(step(letter, symbol, "both"))) of[--symbol] = --letter
    else if (here === Math.fround(step(letter, symbol, "letter"))) letter--
    else symbol--
  }
  return of
}

/** For each symbol (code point) of the fragment the index of its word; −1 for marks, white space and where there are no words. */
export const wordOfSymbols = ({ phonemes, words: text }: Fragment): Int32Array => {
  const symbols = [...phonemes]
  const words = text.split(/\s+/).filter((word) => word !== "")
  const of = new Int32Array(symbols.length).fill(-1)
  if (words.length === 0) return of
  const groups = phonemes.split(/\s+/).filter((group) => group !== "").length
  if (words.length === 1) return of.map((_, at) => (/\s/.test(symbols[at]!) ? -1 : 0))
  if (groups === words.length) {
    let word = -1
    let inside = false
    for (const [at, symbol] of symbols.entries()) {
      const isSpace = /\s/.test(symbol)
      if (!isSpace && !inside) word++
      inside = !isSpace
      if (inside) of[at] = word
    }
    return of
  }
  const letters: Array<string> = []
  const wordOfLetter: Array<number> = []
  for (const [index, word] of words.entries()) {
    if (index > 0) {
      letters.push(" ")
      wordOfLetter.push(-1)
    }
    for (const letter of plain(word)) {
      letters.push(letter)
      wordOfLetter.push(index)
    }
  }
  const letterOf = aligned(letters, symbols)
  // A symbol without a letter belongs to the word before it; a stress mark, and what has none before it, to the one behind it.
  let last = -1
  for (const [at, symbol] of symbols.entries()) {
    if (/\s/.test(symbol)) continue
    const letter = letterOf[at]!
    if (letter >= 0 && wordOfLetter[letter]! >= 0) last = Math.max(last, wordOfLetter[letter]!)
    of[at] = last
  }
  let next = words.length - 1
  for (let at = symbols.length - 1; at >= 0; at--) {
    if (/\s/.test(symbols[at]!)) continue
    const isStress = symbols[at] === "ˈ" || symbols[at] === "ˌ"
    if (of[at]! < 0 || isStress) of[at] = next
    next = of[at]!
  }
  return of
}
