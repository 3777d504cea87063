// eSpeak NG with the dictionaries of every language, for languages that `phonemizer` (English only) cannot read.
// A call blocks its thread for one clause (5 to 30 ms, measured).
// The package is 25 MB and GPL-3.0. Without it the adapters speak English only.
import { ifInstalled } from "../shared/files/OptionalPackage.ts"
import { splitLongWords, withoutLanguageMarks } from "./Espeak.ts"

export interface EspeakLanguages {
  /** IPA of one clause. Throws if eSpeak lacks the voice: it would silently keep the previous one. */
  readonly phonemes: (clause: string, voice: string) => string
  /** The same with "_" between the sounds of a word, so that "tʃ" as one sound differs from "t" before "ʃ". */
  readonly sounds: (clause: string, voice: string) => string
}

export const languagesPackage = "@echogarden/espeak-ng-emscripten"

/** Undefined where the package is not installed. */
export const loadEspeak = ifInstalled(languagesPackage, async (): Promise<EspeakLanguages> => {
  const module = await (await import("@echogarden/espeak-ng-emscripten")).default()
  const worker = await new module.eSpeakNGWorker()
  const sounds: EspeakLanguages["sounds"] = (clause, voice) => {
    if (worker.set_voice(voice) !== 0) throw new Error(`eSpeak has no voice "${voice}"`)
    const { code, ipa } = worker.synthesize_ipa(splitLongWords(clause))
    if (code !== 0) throw new Error(`eSpeak failed with code ${code}`)
    return withoutLanguageMarks(ipa).replace(/\s+/g, " ").trim()
  }
  return {
    sounds,
    phonemes: (clause, voice) => sounds(clause, voice).replace(/[_.-]/g, "").replace(/\s+/g, " ").trim(),
  }
})
