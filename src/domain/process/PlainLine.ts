// Converts text of libraries, engines and exceptions to one bounded line that is safe to log. Pure.

/** Longest reason in a log line, characters. A guess: three lines of a terminal. */
const maxReasonCharacters = 300

/** Terminal commands (colours, cursor movement): ESC followed by CSI or OSC sequences. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: removing them is the purpose
const terminalCommands = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[@-Z\\-_])/g

/** Control characters, line and paragraph separators, and marks that reorder text. */
const controlCharacters = /[\p{Cc}\u2028\u2029\u202a-\u202e\u2066-\u2069]+/gu

/** The text in one line of at most `maxCharacters`, without control characters. A longer one ends with `…`. */
export const plainLine = (text: string, maxCharacters = maxReasonCharacters): string => {
  // Cut first, because the text may have megabytes. Ten times the limit allows for what is removed.
  const plain = text
    .slice(0, maxCharacters * 10)
    .replace(terminalCommands, "")
    .replace(controlCharacters, " ")
    .trim()
  if (plain.length <= maxCharacters) return plain
  const cut = plain.slice(0, maxCharacters - 1)
  // Half of a surrogate pair is not a character.
  return `${/[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut}…`
}

/** A caller can send any method: others than those of HTTP are not repeated. */
export const knownMethod = (method: string): string => (/^[A-Z]{3,7}$/.test(method) ? method : "other")

/**
 * An exception as a reason. Double-quoted parts are removed: exceptions of parsers quote their input, which may be a
 * caller's text.
 */
export const exceptionReason = (cause: unknown): string => {
  const said = cause instanceof Error ? `${cause.name}: ${cause.message}` : String(cause)
  return plainLine(said.replace(/"[^"]*("|$)/g, '"…"'))
}
