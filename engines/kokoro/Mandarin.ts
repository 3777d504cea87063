// Mandarin: Chinese characters → pinyin by the package `pinyin-pro` → symbols of the voices, by the published table of Kokoro v1.0's
// Chinese front end. Words are separated by spaces and found by ICU, which Node contains. No tone changes by its neighbours, as published.
import { ifInstalled } from "../shared/files/OptionalPackage.ts"
import { kanaSymbols } from "./Kana.ts"

export const mandarinPackage = "pinyin-pro"

const rows = (text: string): Readonly<Record<string, string>> =>
  Object.fromEntries(text.split(" ").map((row) => row.split("=") as [string, string]))

const initials = rows(
  "b=p p=pʰ m=m f=f d=t t=tʰ n=n l=l g=k k=kʰ h=x j=ʨ q=ʨʰ x=ɕ zh=ꭧ ch=ꭧʰ sh=ʂ r=ɻ z=ʦ c=ʦʰ s=s",
)

/** "0" is the place of the tone. "v" is "ü". */
const finals = rows(
  "a=a0 ai=ai0 an=a0n ang=a0ŋ ao=au0 e=ɤ0 ei=ei0 en=ə0n eng=ə0ŋ i=i0 ia=ja0 ian=jɛ0n iang=ja0ŋ iao=jau0 ie=je0 in=i0n io=jɔ0 " +
    "iou=jou0 ing=i0ŋ iong=jʊ0ŋ ong=ʊ0ŋ ou=ou0 u=u0 uei=wei0 ua=wa0 uai=wai0 uan=wa0n uen=wə0n uang=wa0ŋ ueng=wə0ŋ uo=wo0 o=wo0 " +
    "v=y0 ve=ɥe0 van=ɥɛ0n vn=y0n iu=jou0 ui=wei0 un=wə0n",
)

/** Syllables without an initial that do not follow from the table of finals. */
const whole = rows(
  "er=ɚ0 o=ɔ0 ê=ɛ0 m=m0 n=n0 ng=ŋ0 hm=hm0 hng=hŋ0 yi=i0 yin=i0n ying=i0ŋ wu=u0 yu=y0 yue=ɥe0 yuan=ɥɛ0n yun=y0n",
)

/** Of the tones 1 to 4 and the neutral one. */
const tones = ["", "→", "↗", "↓", "↘", ""]

/** The symbols of "zhong1"; undefined for what is no syllable of Mandarin. The neutral tone is 0 or 5. */
export const syllableSymbols = (syllable: string): string | undefined => {
  const [, letters = "", tone = "0"] = /^([a-zêü]+)([0-5])$/.exec(syllable) ?? []
  const plain = letters.replaceAll("ü", "v")
  const placed = (sounds: string | undefined): string | undefined =>
    sounds?.replace("0", tones[Number(tone)]!)
  if (whole[plain] !== undefined) return placed(whole[plain])
  const spelled = plain.replace(/^y/, "i").replace(/^w/, "u")
  const [, initial = "", rest = ""] = /^([zcs]h|[bpmfdtnlgkhjqxrzcs])?(.+)$/.exec(spelled) ?? []
  if (rest === "i" && /^(?:[zcs]h?|r)$/.test(initial)) return placed(`${initials[initial]}ɨ0`)
  const sounds = finals[/^[jqx]$/.test(initial) ? rest.replace(/^u/, "v") : rest]
  return sounds === undefined ? undefined : placed((initials[initial] ?? "") + sounds)
}

const segmenter = new Intl.Segmenter("zh", { granularity: "word" })

/** Symbols of Chinese characters and kana, a space between words. What has no reading is left out. */
type MandarinSymbols = (text: string) => string

/** Undefined where the package is not installed. */
export const loadMandarin = ifInstalled(mandarinPackage, async (): Promise<MandarinSymbols> => {
  const { pinyin } = await import("pinyin-pro")
  return (text) => {
    const syllables = pinyin(text, { type: "array", toneType: "num", toneSandhi: false, v: true })
    let at = 0
    return Array.from(segmenter.segment(text), ({ segment }) => {
      const from = at
      at += [...segment].length
      return /\p{Script=Han}/u.test(segment)
        ? syllables
            .slice(from, at)
            .map((syllable) => syllableSymbols(syllable) ?? "")
            .join("")
        : kanaSymbols(segment)
    })
      .filter((word) => word !== "")
      .join(" ")
  }
})
