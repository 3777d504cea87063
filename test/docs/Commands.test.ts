// Commands have one spelling on all pages: `npm run -s edgewise -- X` in code that is pasted, `edgewise X` in text. Which commands
// there are is in src/main.ts.
import { readdirSync, readFileSync } from "node:fs"
import { expect, it } from "vitest"
import { repository } from "../support/docs/GuideBlocks.ts"

const pages = [
  "README.md",
  "CONTRIBUTING.md",
  "bench/README.md",
  ...readdirSync(`${repository}/docs`, { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md"))
    .map((path) => `docs/${path}`),
]

/** Of an installed package and of the image, which have a program `edgewise`. */
const ofPrograms = ["docs/install.md", "docs/container.md"]

const names = [...readFileSync(`${repository}/src/main.ts`, "utf8").matchAll(/^ {2}(\w+): async \(\)/gm)]
const command = `(?:${names.map(([, name]) => name).join("|")})`

/** A shell that starts the program itself, or npm with another spelling. */
const inCode = new RegExp(
  `(?:^|[|&;(] *)(?:\\w+=\\S* )*(?:(?:npx|npm exec --) )?edgewise ${command}\\b|npm run (?!-s edgewise -- )(?:-s )?edgewise`,
)
const inText = new RegExp(`npm run (?:-s )?edgewise (?:-- )?${command}\\b`)

/** Lines of a page, and whether each is code: fenced, or indented. */
const linesOf = (page: string) => {
  let isFenced = false
  return readFileSync(`${repository}/${page}`, "utf8")
    .split("\n")
    .map((text, at) => {
      if (text.startsWith("\u0060\u0060\u0060")) isFenced = !isFenced
      return { where: `${page}:${at + 1}`, text, isCode: isFenced || / {4}/.test(text.slice(0, 4)) }
    })
}

it("knows the commands", () => {
  expect(names.map(([, name]) => name)).toContain("bench")
})

it("code that is pasted runs commands as a clone has them", () => {
  const wrong = pages
    .filter((page) => !ofPrograms.includes(page))
    .flatMap(linesOf)
    .filter(({ isCode, text }) => isCode && inCode.test(text))
  expect(wrong.map(({ text, where }) => `${where}: ${text}`)).toEqual([])
})

it("text has the short form", () => {
  const wrong = pages.flatMap(linesOf).filter(({ isCode, text }) => !isCode && inText.test(text))
  expect(wrong.map(({ text, where }) => `${where}: ${text}`)).toEqual([])
})
