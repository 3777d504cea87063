// TypeScript to JavaScript for the package: same lines, same columns, paths to the `.js` files.
import { expect, it } from "vitest"
import { pathsIn, toJavaScript } from "../../pack/Emit.ts"
import { sourceFiles, textOf } from "../map/ReadImports.ts"

it("blanks types, and names the files with their new ending", () => {
  const made = toJavaScript(
    [
      'import { type A, b } from "#domain/wire/A.ts"',
      'const worker = new URL("./codecWorker.ts", import.meta.url)',
      "const c: A = b as A",
      'const text = "notes.ts"',
      'const later = () => import("../B.ts")',
    ].join("\n"),
  )
  expect(made.split("\n")).toEqual([
    'import {         b } from "#domain/wire/A.js"',
    'const worker = new URL("./codecWorker.js", import.meta.url)',
    "const c    = b     ",
    'const text = "notes.ts"',
    'const later = () => import("../B.js")',
  ])
  expect(pathsIn(made)).toEqual(["#domain/wire/A.js", "./codecWorker.js", "../B.js"])
})

it("keeps every statement of the program at its line and column", () => {
  for (const path of sourceFiles().filter((one) => !one.endsWith(".d.ts"))) {
    const text = textOf(path)
    const made = toJavaScript(text)
    expect(made.length, path).toBe(text.length)
    expect(made.split("\n").length, path).toBe(text.split("\n").length)
  }
})
