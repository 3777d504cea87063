// The API key as people paste it, and as the link brings it that a node prints at its start. Pure.

/** What stands around a key that was copied from a file, a mail or a terminal: quotes of all kinds, commas, semicolons. */
const around = /^["'`´“”„‘’‚«»,;]+|["'`´“”„‘’‚«»,;]+$/g

/**
 * A key without what was pasted with it: spaces, line ends, characters without a width, quotes, `Bearer` before it, or the name
 * of a variable. No key has a space in it, so those of a line that was broken are left out too.
 * @param {string} text
 */
export const cleanKey = (text) =>
  text
    .replace(/[\s\u200b-\u200d\u2060\ufeff]+/g, " ")
    .trim()
    .replace(/^(?:export )?[A-Z_]+ ?= ?/, "")
    .replace(around, "")
    .replace(/^(?:authorization: ?)?bearer /i, "")
    .replace(around, "")
    .replaceAll(" ", "")

/**
 * The key in the fragment of an address, `#key=…`; undefined for other fragments. The fragment of an address is never sent to a
 * server.
 * @param {string} fragment with its `#`
 */
export const keyOfFragment = (fragment) => {
  const [, text] = /^#key=(.+)$/.exec(fragment) ?? []
  if (text === undefined) return undefined
  try {
    return cleanKey(decodeURIComponent(text))
  } catch {
    return cleanKey(text)
  }
}
