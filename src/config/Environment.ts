// Environment variables that begin like the settings' and are none: misspelled settings, which would be ignored silently.
// Pure: Config hands in the environment and the names.
import { suggestion } from "#domain/models/NearestName.ts"

const prefix = "EDGEWISE_"

/** Lines that are printed. A guess: more of them come from a script that means something else. */
const maxLines = 20

/** One line for each unknown variable, with its name alone: a value may be a credential. */
export const unknownVariables = (
  env: Readonly<Record<string, string | undefined>>,
  known: ReadonlyArray<string>,
): ReadonlyArray<string> => {
  const unknown = Object.keys(env).filter((name) => name.startsWith(prefix) && !known.includes(name))
  const lines = unknown.sort().map((name) => {
    const shown = name.slice(0, 100).replace(/[^\x21-\x7e]/g, "?")
    const near = suggestion(
      name.slice(prefix.length),
      known.map((one) => one.slice(prefix.length)),
    )
    const hint = near.includes("did you mean")
      ? near.replace('"', `"${prefix}`)
      : "; see edgewise serve --help"
    return `${shown}: is not a setting${hint}`
  })
  const hidden = lines.length - maxLines
  return hidden > 0 ? [...lines.slice(0, maxLines), `and ${hidden} more unknown variables`] : lines
}
