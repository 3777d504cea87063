// The languages of the cloning model and how each is read: eSpeak's voice and what is special about its IPA.
// Data and pure functions; called by the cloning front end.

export interface Language {
  /** ISO-639-1, the request's word. */
  readonly code: string
  /** eSpeak NG's voice; undefined for English, which has a front end of its own. */
  readonly voice: string | undefined
  readonly tidy: (ipa: string) => string
}

const same = (ipa: string): string => ipa

/**
 * Mandarin: tones are written as 1, 2, 4, 5 and "ɜ" after the vowel and have no symbol here; "h" after a stop is
 * aspiration, and a stop without it is nearest to a voiced one.
 */
const mandarin = (ipa: string): string =>
  ipa
    .replace(/(?<=[\p{L}])ɜ(?![\p{L}])|[1-5]/gu, "")
    .replace(/(?<!s)(t[sɕʂ]?|p|k)(h?)/gu, (_, stop: string, aspirated: string) =>
      aspirated === "h" ? stop : (VOICED[stop] ?? stop),
    )

const VOICED: Readonly<Record<string, string>> = { t: "d", p: "b", k: "ɡ", ts: "dz", tɕ: "dʑ", tʂ: "dʐ" }

/**
 * What eSpeak NG makes of them: Latin-script languages are read by full rules and dictionaries. Arabic gets its
 * short vowels only where they are written. Japanese kana are read, kanji are called "Chinese letter". Mandarin is
 * read from its dictionary, tones lost.
 */
export const LANGUAGES: ReadonlyArray<Language> = [
  { code: "en", voice: undefined, tidy: same },
  { code: "fr", voice: "fr", tidy: same },
  { code: "de", voice: "de", tidy: same },
  { code: "es", voice: "es", tidy: same },
  { code: "it", voice: "it", tidy: same },
  { code: "pt", voice: "pt-br", tidy: same },
  { code: "pl", voice: "pl", tidy: same },
  { code: "ja", voice: "ja", tidy: same },
  { code: "ar", voice: "ar", tidy: same },
  { code: "zh", voice: "cmn", tidy: mandarin },
]

/** Signs that eSpeak reads in the language it speaks; everything else without a sound is left out. */
const UNSPOKEN = /[^\p{L}\p{M}\p{N}\s';:,.!?—…"()“”%€$£+&@=°-]/gu

/** One sentence of any language but English → what its eSpeak voice reads. Numbers are left to the voice. */
export const foreignText = (sentence: string): string =>
  sentence.replace(UNSPOKEN, " ").replace(/\s+/g, " ").trim()
