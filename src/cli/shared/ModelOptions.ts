// Options of the commands that name a model or a language.
import { Argument, Flag } from "effect/cli"

export const modelArgument = (name: string) =>
  Argument.String(name).pipe(Argument.withDescription("Model of the catalog"))

/** `--model` with a default. */
export const modelFlag = (description: string, fallback: string) =>
  Flag.String("model").pipe(
    Flag.withMetavar("ID"),
    Flag.withDescription(`${description}; default: ${fallback}`),
    Flag.withDefault(fallback),
  )

export const languageFlag = (description: string) =>
  Flag.String("language").pipe(
    Flag.withMetavar("CODE"),
    Flag.withDescription(
      description.includes("default: ") ? description : `${description}; default: the model's`,
    ),
    Flag.optional,
  )
