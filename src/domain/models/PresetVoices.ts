// Names of preset voices in the form that Kokoro published: the first letter is the language and the second the sex, as in `ef_dora`. Several
// names joined by "+" are a mixture (protocol 8.6). Pure.

/** First letter → ISO-639-1. American (a) and British (b) are both English. */
const languageOfLetter: Readonly<Record<string, string>> = {
  a: "en",
  b: "en",
  e: "es",
  f: "fr",
  h: "hi",
  i: "it",
  j: "ja",
  p: "pt",
  z: "zh",
}

/** The language of a voice with a name of this form, or of the first voice of a mixture; undefined for any other name. */
export const languageOfVoice = (voice: string): string | undefined =>
  /^[a-z][fm]_\w{1,100}(?:$|[\s(+])/.test(voice) ? languageOfLetter[voice[0]!] : undefined

/** The languages of these voices, each once, in their order; English for other names. */
export const languagesOfVoices = (voices: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...new Set(voices.map((voice) => languageOfVoice(voice) ?? "en")),
]

interface MixedVoice {
  readonly voice: string
  /** 0 to 1; those of a mixture sum to 1. */
  readonly weight: number
}

export const isMixture = (voice: string): boolean => /[+(]/.test(voice)

/** A name, and its weight in brackets: up to nine digits before and after the point. */
const partPattern = /^([^()+]+?)(?:\s*\(\s*(\d{1,9}(?:\.\d{1,9})?|\.\d{1,9})\s*\))?$/

/**
 * The voices of `af_bella+af_sky(2)`, a third and two thirds: a voice without a weight has 1, and all are divided by their sum.
 * @param voice at most a few hundred characters: the problem contains a part of it
 * @param known the voice that a name means, or undefined
 */
export const mixtureOf = (
  voice: string,
  known: (name: string) => string | undefined,
): { readonly voices: ReadonlyArray<MixedVoice> } | { readonly problem: string } => {
  const voices: Array<MixedVoice> = []
  for (const part of voice.split("+")) {
    const match = partPattern.exec(part.trim())
    if (match === null) {
      return { problem: `"${part.trim()}" must be a voice, or one with a weight such as af_bella(2)` }
    }
    const name = known(match[1]!)
    if (name === undefined) return { problem: `the mixture has an unknown voice, ${match[1]}` }
    voices.push({ voice: name, weight: Number(match[2] ?? 1) })
  }
  const sum = voices.reduce((total, { weight }) => total + weight, 0)
  if (sum === 0) return { problem: `the weights of ${voice} sum to 0` }
  const first = voices[0]!.voice
  const other = voices.find((one) => languageOfVoice(one.voice) !== languageOfVoice(first))?.voice
  if (other !== undefined) {
    return { problem: `${first} and ${other} speak different languages and cannot be mixed` }
  }
  return { voices: voices.map((one) => ({ voice: one.voice, weight: one.weight / sum })) }
}
