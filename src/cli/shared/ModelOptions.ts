// Options of the commands that name a model or a language.
import { Argument, Flag } from "effect/cli"

export const modelArgument = (name: string) =>
  Argument.String(name).pipe(Argument.withDescription("Model of the catalog"))

/** `--model` with a default. */
export const modelFlag = (description: string, fallback: string) =>
  Flag.String("model").pipe(
    Flag.withMetavar("ID"),
    Flag.withDescription(description),
    Flag.withDefault(fallback),
  )

export const languageFlag = (description: string) =>
  Flag.String("language").pipe(Flag.withMetavar("CODE"), Flag.withDescription(description), Flag.optional)
