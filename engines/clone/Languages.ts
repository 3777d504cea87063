// The languages of the cloning model: eSpeak's voice for each, and the corrections of its IPA. Data and pure functions.

export interface Language {
  /** ISO-639-1, as in the request. */
  readonly code: string
  /** eSpeak NG's voice; undefined for English, which has a front end of its own. */
  readonly voice: string | undefined
  readonly tidy: (ipa: string) => string
}

const same = (ipa: string): string => ipa

/**
 * Mandarin: eSpeak writes a tone behind its vowel: "ɜ" rises, "2" is low, "5" is high or falls (it does not say which), "1" and "4" are
 * neutral. The first two have a symbol. "h" after a stop is aspiration, and a stop without it is nearest to a voiced one.
 */
const mandarin = (ipa: string): string =>
  ipa
    .replaceAll(/[145]/g, "")
    .replaceAll(/ɜ(?!ː)/g, "↗")
    .replaceAll("2", "↓")
    .replaceAll(/(?<!s)(t[sɕʂ]?|p|k)(h?)/gu, (_, stop: string, aspirated: string) =>
      aspirated === "h" ? stop : (voiced[stop] ?? stop),
    )

const voiced: Readonly<Record<string, string>> = { t: "d", p: "b", k: "ɡ", ts: "dz", tɕ: "dʑ", tʂ: "dʐ" }

/**
 * What eSpeak NG reads: Latin-script languages by complete rules and dictionaries. Arabic short vowels only if they
 * are written. Japanese kana; it reads every kanji as "Chinese letter". Mandarin from its dictionary, with two of
 * the four tones.
 */
export const languageCodes: ReadonlyArray<Language> = [
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
