// A vocabulary of 150,000 tokens, as large as those of current models: syllables, words with a space in front, capitals, digits,
// punctuation, Cyrillic and Chinese letters, long runs of blanks, and every byte. The same in every run.
import { TokenTrie } from "#engines/grammar/match/TokenTrie.ts"
import { seededRandom } from "#engines/shared/listening/Sampling.ts"

const utf8 = new TextEncoder()
const size = 150_000

export const largeVocabulary = (): TokenTrie => {
  const random = seededRandom(7)
  const below = (count: number): number => Math.floor(random() * count)
  const letterOf = (letters: string): string => letters[below(letters.length)] ?? ""
  const joined = (count: number, make: () => string): string => Array.from({ length: count }, make).join("")
  const syllable = (): string =>
    letterOf("bcdfghjklmnpqrstvwxyz") + letterOf("aeiou") + (below(3) === 0 ? letterOf("lmnrst") : "")
  const script = (from: number, count: number): string => String.fromCodePoint(from + below(count))
  const word = (): string => {
    const kind = below(20)
    if (kind < 9) return ` ${joined(1 + below(4), syllable)}`
    if (kind < 14) return joined(1 + below(3), syllable)
    if (kind === 14) return ` ${syllable().toUpperCase()}`
    if (kind === 15) return String(below(1_000))
    if (kind === 16) return joined(2, () => script(0x4e00, 8_000))
    if (kind === 17) return joined(3, () => script(0x400, 100))
    if (kind === 18) return joined(1 + below(4), () => letterOf('{}[]":,.\\/-_()<>=+ \n'))
    return below(40) === 0 ? " ".repeat(1 + below(128)) : joined(2 + below(3), syllable)
  }
  const words = new Set<string>()
  while (words.size < size - 257) words.add(word())
  const bytes = [
    ...Array.from({ length: 256 }, (_, byte) => Uint8Array.of(byte)),
    ...Array.from(words, (text) => utf8.encode(text)),
  ]
  const end = bytes.length
  return TokenTrie.of({
    size: end + 1,
    bytes: (token) => bytes[token] ?? new Uint8Array(0),
    isEnd: (token) => token === end,
  })
}
