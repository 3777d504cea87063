// The refusal of a request whose language a recogniser does not know.
import { type EngineError, invalidInput } from "../../protocol/Engine.ts"

export const unknownLanguage = (language: string): EngineError =>
  invalidInput("language", `this model does not know the language "${language.slice(0, 16)}"`)
