// eSpeak NG with the dictionaries of every language, for languages that `phonemizer` (English only) cannot read.
// A call blocks its thread for one clause (5 to 30 ms, measured).
// The package is 25 MB and GPL-3.0. Without it the adapter speaks English only.
import * as Effect from "effect/Effect"
import { splitLongWords, withoutLanguageMarks } from "../kokoro/Espeak.ts"
import { EngineError } from "../protocol/Engine.ts"

export interface EspeakLanguages {
  /** IPA of one clause. Throws if eSpeak lacks the voice: it would silently keep the previous one. */
  readonly phonemes: (clause: string, voice: string) => string
}

/** Undefined where the package is not installed. */
export const loadEspeak: Effect.Effect<EspeakLanguages | undefined, EngineError> = Effect.tryPromise({
  try: async () => {
    const module = await (await import("@echogarden/espeak-ng-emscripten")).default()
    const worker = await new module.eSpeakNGWorker()
    return {
      phonemes: (clause: string, voice: string) => {
        if (worker.set_voice(voice) !== 0) throw new Error(`eSpeak has no voice "${voice}"`)
        const { code, ipa } = worker.synthesize_ipa(splitLongWords(clause))
        if (code !== 0) throw new Error(`eSpeak failed with code ${code}`)
        return withoutLanguageMarks(ipa.replace(/_/g, "")).replace(/[-.]/g, "").replace(/\s+/g, " ").trim()
      },
    }
  },
  catch: (cause) => cause,
}).pipe(
  Effect.catch((cause) =>
    cause instanceof Error && "code" in cause && cause.code === "ERR_MODULE_NOT_FOUND"
      ? Effect.succeed(undefined)
      : Effect.fail(new EngineError({ reason: "LoadFailed", field: "", detail: `eSpeak: ${String(cause)}` })),
  ),
)
