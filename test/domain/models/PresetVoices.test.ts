// Names of voices: their languages, and mixtures of several with weights.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { isMixture, languageOfVoice, languagesOfVoices, mixtureOf } from "#domain/models/PresetVoices.ts"

const voices = ["af_bella", "af_sky", "bf_emma", "ef_dora", "own"]
const known = (name: string) => (name === "alias" ? "af_sky" : voices.find((voice) => voice === name))
const mixed = (text: string) => mixtureOf(text, known)

describe("the language of a voice", () => {
  it.each([
    ["af_bella", "en"],
    ["bm_george", "en"],
    ["ef_dora", "es"],
    ["ff_siwis", "fr"],
    ["hm_omega", "hi"],
    ["im_nicola", "it"],
    ["jf_alpha", "ja"],
    ["pm_alex", "pt"],
    ["zf_xiaobei", "zh"],
    ["ef_dora(2)+em_alex", "es"],
  ])("%s is %s", (voice, language) => {
    expect(languageOfVoice(voice)).toBe(language)
  })

  it.each(["", "default", "bella", "ex_dora", "ef", "df_anna", `ef_${"a".repeat(10_000)}`])(
    "%s has none by its name",
    (voice) => {
      expect(languageOfVoice(voice)).toBeUndefined()
    },
  )

  it("of several is each once", () => {
    expect(languagesOfVoices(["af_a", "bf_b", "ef_c", "own", "ff_d"])).toEqual(["en", "es", "fr"])
  })
})

describe("a mixture", () => {
  it.each([
    ["af_bella+af_sky", [0.5, 0.5]],
    ["af_bella+af_sky(2)", [1 / 3, 2 / 3]],
    ["af_bella(0.5)+af_sky(.5)", [0.5, 0.5]],
    [" af_bella ( 1 ) + af_sky (3)", [0.25, 0.75]],
    ["af_bella(0)+af_sky", [0, 1]],
    ["af_bella(0.5)", [1]],
    ["af_bella+bf_emma+af_bella(2)", [0.25, 0.25, 0.5]],
  ])("%s has the weights %j", (text, weights) => {
    const mixture = mixed(text)
    expect("voices" in mixture && mixture.voices.map(({ weight }) => weight)).toEqual(weights)
  })

  it("has the voices that its names mean", () => {
    expect(mixed("alias+af_bella")).toEqual({
      voices: [
        { voice: "af_sky", weight: 0.5 },
        { voice: "af_bella", weight: 0.5 },
      ],
    })
  })

  it.each([
    ["af_bella+af_nicole(2)", "the mixture has an unknown voice, af_nicole"],
    ["af_bella(0)+af_sky(0.0)", "the weights of af_bella(0)+af_sky(0.0) sum to 0"],
    ["af_bella+ef_dora", "af_bella and ef_dora speak different languages and cannot be mixed"],
    ["af_bella+", '"" must be a voice, or one with a weight such as af_bella(2)'],
    ["+", '"" must be a voice, or one with a weight such as af_bella(2)'],
    ["af_bella(-1)+af_sky", '"af_bella(-1)" must be a voice, or one with a weight such as af_bella(2)'],
    ["af_bella(NaN)", '"af_bella(NaN)" must be a voice, or one with a weight such as af_bella(2)'],
    ["af_bella(1e9)", '"af_bella(1e9)" must be a voice, or one with a weight such as af_bella(2)'],
    ["af_bella()", '"af_bella()" must be a voice, or one with a weight such as af_bella(2)'],
    ["af_bella(1)(2)", '"af_bella(1)(2)" must be a voice, or one with a weight such as af_bella(2)'],
  ])("%s is refused with the name", (text, problem) => {
    expect(mixed(text)).toEqual({ problem })
  })

  it("has weights that sum to 1, or a problem, for any text", () => {
    const part = fc.tuple(
      fc.constantFrom(...voices, "alias", "__proto__"),
      fc.oneof(
        fc.constant(""),
        fc.double().map((n) => `(${n})`),
        fc.nat(99).map((n) => `(${n})`),
      ),
    )
    const text = fc.oneof(
      fc.string({ maxLength: 200 }),
      fc.array(part, { minLength: 1, maxLength: 9 }).map((all) => all.map((one) => one.join("")).join("+")),
    )
    fc.assert(
      fc.property(text, (voice) => {
        const mixture = mixed(voice)
        if ("problem" in mixture) return mixture.problem !== ""
        const sum = mixture.voices.reduce((total, { weight }) => total + weight, 0)
        return Math.abs(sum - 1) < 1e-9 && mixture.voices.every(({ voice: name }) => voices.includes(name))
      }),
    )
  })

  it("is told from a name by its marks", () => {
    expect(["af_bella", "default", "af_bella+af_sky", "af_bella(2)"].map(isMixture)).toEqual([
      false,
      false,
      true,
      true,
    ])
  })
})
