// Finds environment variables that have the settings' prefix and are not settings: mostly misspelled ones, which would
// be ignored silently. Pure.
import { suggestion } from "#domain/models/NearestName.ts"

const prefix = "EDGEWISE_"

/** Lines printed at most. A guess: more come from a script that means something else. */
const maxLines = 20

/** One line for each unknown variable, with its name only: a value may be a credential. */
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
