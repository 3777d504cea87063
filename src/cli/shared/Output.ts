// Shared output and options of the commands: JSON documents, times, text from elsewhere, `--json`, `--org`, and the
// refusal of options that exclude each other.
import { Console, DateTime } from "effect"
import { Argument, CliError, Flag } from "effect/cli"
import { accountNameRule, isAccountName } from "#store/accounts/AccountName.ts"

/** An option without a value, off by default. */
export const switchFlag = (name: string, description: string) =>
  Flag.Boolean(name).pipe(Flag.withDescription(description), Flag.withDefault(false))

/** An option with a text that may be left out. */
export const textFlag = (name: string, metavar: string, description: string) =>
  Flag.String(name).pipe(Flag.withMetavar(metavar), Flag.withDescription(description), Flag.optional)

/** An option with an integer of a range. */
export const integerFlag = (name: string, low: number, high: number, metavar: string, description: string) =>
  Flag.Int(name).pipe(
    Flag.filter(
      (value) => value >= low && value <= high,
      () => `an integer from ${low} to ${high}`,
    ),
    Flag.withMetavar(metavar),
    Flag.withDescription(description),
  )

/** `--json` of every command: prints one document, and nothing else, on standard output. */
export const jsonFlag = switchFlag("json", "Print one JSON document")

export const printJson = (document: unknown) => Console.log(JSON.stringify(document, null, 2))

/** Ends the command `edgewise PATH` with its help and this message. */
export const wrongUsage = (path: ReadonlyArray<string>, message: string) =>
  new CliError.ShowHelp({
    commandPath: ["edgewise", ...path],
    errors: [new CliError.ValidationError({ message })],
  })

/** `--org` of the commands that work on one organization. */
export const orgFlag = Flag.String("org").pipe(
  Flag.filter(isAccountName, () => accountNameRule),
  Flag.withMetavar("NAME"),
  Flag.withDescription("Organization"),
)

/** The organization as an argument. */
export const orgArgument = Argument.String("NAME").pipe(
  Argument.filter(isAccountName, () => accountNameRule),
  Argument.withDescription("Organization"),
)

export const isoTime = (ms: number): string => DateTime.formatIso(DateTime.makeUnsafe(ms))

// ---------------------------------------------------------------- text from elsewhere

// A terminal obeys control characters: with them a model's answer could rewrite lines above it, set the window's title or, on some
// terminals, type into the shell.

/** C0 but tab and line feed, DEL, C1, and the characters that reverse the direction of the text after them. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what is sought
const controls = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202d\u202e]/g

/** The picture of a control character, e.g. ␛ for escape; U+FFFD for those that have none. */
const pictureOf = (character: string): string => {
  const code = character.charCodeAt(0)
  if (code < 0x20) return String.fromCharCode(0x2400 + code)
  return code === 0x7f ? "\u2421" : "\ufffd"
}

/** The text with each control character replaced by a visible one. A carriage return before a line feed is dropped. */
export const visible = (text: string): string => text.replaceAll("\r\n", "\n").replace(controls, pictureOf)

/** A JSON document in one line, in which control characters that JSON allows are escaped. */
export const visibleJson = (document: unknown): string =>
  JSON.stringify(document).replace(
    /[\u007f-\u009f\u202d\u202e]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  )
