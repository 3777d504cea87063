// TypeScript to JavaScript for the package, because Node refuses to strip types from files below node_modules. Types
// become blanks, so every statement keeps its line and column: a stack trace of the package points at the same place of
// the repository's file. No compiler changes what runs.
import { stripTypeScriptTypes } from "node:module"

/** A string that is a path or an alias of package.json, and ends in `.ts`. Names of packages do not begin like this. */
const paths = /(["'])((?:\.{1,2}\/|#)[^"'`\n]*)\.ts\1/g

/** The text of a `.js` file that does what the `.ts` file does. Both endings have the same length. */
export const toJavaScript = (text: string): string =>
  stripTypeScriptTypes(text, { mode: "strip" }).replace(paths, "$1$2.js$1")

/** The paths of other source files in a text, as `toJavaScript` leaves them. */
export const pathsIn = (javaScript: string): ReadonlyArray<string> =>
  [...javaScript.matchAll(/(["'])((?:\.{1,2}\/|#)[^"'`\n]*\.js)\1/g)].map(([, , path = ""]) => path)
