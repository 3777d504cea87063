// Any string → plain text that can be read aloud: Unicode is normalised, everything without a sound removed. Applied
// once a request, before the cut into sentences; for every language. Knows no numbers or words.

/** Quotation marks of many scripts → the two curly ones in the model's symbol table; apostrophes → "'". */
const quoteMarks: ReadonlyArray<readonly [RegExp, string]> = [
  [/[‘’‚‛′ʼ`´]/g, "'"],
  [/[„‟«‹「『《〈【]/g, "“"],
  [/[»›」』》〉】]/g, "”"],
  [/''/g, '"'],
]

/** A character of Chinese or Japanese, which have no spaces around their marks. */
const spaceless = String.raw`[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}ー]`

/** Punctuation of other scripts → the model's own, with the space that those scripts omit. */
const punctuation: ReadonlyArray<readonly [RegExp, string]> = [
  [/[、，،﹐]/g, ", "],
  [/[。｡．۔।]/g, ". "],
  [/[؛；]/g, "; "],
  [/[؟？]/g, "? "],
  [/！/g, "! "],
  [/：/g, ": "],
  [/[¿¡]/g, " "],
  [/[‐‑]/g, "-"],
  [/[―⸺⸻]|-{2,}/g, "—"],
  [new RegExp(`(?<=${spaceless}[,.!?;:…]) (?=[”)])`, "gu"), ""],
  [new RegExp(`(?<=[,.!?;:…”)])(?=${spaceless})|(?<=${spaceless}[,.!?;:…”)]?)(?=[“(])`, "gu"), " "],
]

/** Signs whose compatibility form would be joined to the word or number beside them. */
const beforeNfkc: ReadonlyArray<readonly [RegExp, string]> = [
  [/[™℠®©]/g, " "],
  [/(\d)([¼-¾⅐-⅞])/g, "$1 $2"],
  [/(?<=\d)(?=[⁰¹²³⁴-⁹])/g, "^"],
  [/…/g, "..."],
  // Of full width, without a space behind them. Between digits they may belong to a number or a time of day.
  [/[！？；]|，(?![０-９])|(?<![０-９])，|：(?!\p{Nd})|(?<!\p{Nd})：/gu, "$& "],
]

const englishPowers: ReadonlyArray<readonly [RegExp, string]> = [
  [/(?<!\^)²/g, " squared "],
  [/(?<!\^)³/g, " cubed "],
]

const silent: ReadonlyArray<readonly [RegExp, string]> = [
  [/\r\n?|[\u2028\u2029\u0085\v\f]/g, "\n"],
  [/[^\S\n]/g, " "],
  // Zero-width characters, bidirectional controls, soft hyphens, variation selectors: removed without a space.
  [/\p{Cf}|[\u034f\ufe00-\ufe0f]/gu, ""],
  [/(?!\n)\p{Cc}/gu, " "],
  // Pictures, flags, skin tones, keycaps: a person reading aloud would skip them.
  [/\p{Extended_Pictographic}|[\u{1f1e6}-\u{1f1ff}\u{1f3fb}-\u{1f3ff}\u20e3]/gu, " "],
  // Private use, unassigned, and the U+FFFD that `toWellFormed` made of lone surrogates.
  [/[\p{Co}\p{Cn}\ufffd]/gu, " "],
  // At most two marks on a letter: Arabic and Vietnamese need two, stacked decorations have dozens.
  [/(\p{M}{2})\p{M}+/gu, "$1"],
]

const repeats: ReadonlyArray<readonly [RegExp, string]> = [
  [/\.{2,}/g, "…"],
  [/([,;:—…])(?:\s*\1)+/g, "$1"],
  [/([!?]{2})[!?]+/g, "$1"],
  [/ {2,}/g, " "],
]

const apply = (text: string, rules: ReadonlyArray<readonly [RegExp, string]>): string => {
  let out = text
  for (const [pattern, replacement] of rules) out = out.replace(pattern, replacement)
  return out
}

/**
 * Linear in the length of `raw`. Line breaks are kept, because they end sentences and list items. Languages other than English keep "º" and
 * "ª" as they are, and say "m²", which becomes "m2", in their own words.
 * @param language ISO-639-1
 */
export const cleanText = (raw: string, language = "en"): string => {
  const wellFormed = raw.toWellFormed()
  const normal =
    language === "en"
      ? apply(apply(wellFormed, beforeNfkc), englishPowers).normalize("NFKC")
      : apply(wellFormed, beforeNfkc).replace(/[^ºª]+/g, (part) => part.normalize("NFKC"))
  const uniform = apply(normal, silent)
  return apply(apply(apply(uniform, quoteMarks), punctuation), repeats)
}
