// Every relative link of the documentation leads to a file of the repository, and one with `#` to a heading of it.
import { existsSync, readdirSync, readFileSync } from "node:fs"
import { dirname, join } from "node:path"
import { expect, it } from "vitest"
import { repository } from "../support/docs/GuideBlocks.ts"

const pages = [
  "README.md",
  "CONTRIBUTING.md",
  "CHANGELOG.md",
  "bench/README.md",
  "engines/grammar/README.md",
  "models/README.md",
  "models/train/README.md",
  "src/web/voice/README.md",
  ...readdirSync(join(repository, "docs"), { recursive: true, encoding: "utf8" })
    .filter((path) => path.endsWith(".md"))
    .map((path) => join("docs", path)),
]

const textOf = (path: string): string => readFileSync(join(repository, path), "utf8")

/** Without code, in which brackets are no links. */
const prose = (text: string): string => text.replace(/^```.*?^```$/gms, "").replace(/`[^`\n]*`/g, "``")

/** The name that a heading gets in its page's address. */
const anchorOf = (heading: string): string =>
  heading
    .toLowerCase()
    .replace(/\[([^\]]*)\]\([^)]*\)/g, "$1")
    .replace(/[^\p{L}\p{N} _-]/gu, "")
    .trim()
    .replaceAll(" ", "-")

const anchorsOf = (path: string): ReadonlyArray<string> =>
  [
    ...textOf(path)
      .replace(/^```.*?^```$/gms, "")
      .matchAll(/^#+ (.*)$/gm),
  ].map(([, heading = ""]) => anchorOf(heading))

const problemsOf = (page: string): ReadonlyArray<string> =>
  [...prose(textOf(page)).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, link = ""]) => {
    if (/^[a-z]+:/.test(link)) return []
    const [path = "", anchor] = link.split("#")
    const file = path === "" ? page : join(dirname(page), path)
    if (!existsSync(join(repository, file))) return [`${page}: ${link} is no file`]
    const isKnown = anchor === undefined || !file.endsWith(".md") || anchorsOf(file).includes(anchor)
    return isKnown ? [] : [`${page}: ${link} is no heading`]
  })

it("lead somewhere", () => {
  expect(pages.length).toBeGreaterThan(40)
  expect(pages.flatMap(problemsOf)).toEqual([])
})

it("are known by their headings", () => {
  expect(anchorOf("What the parser of uWebSockets.js cannot do")).toBe(
    "what-the-parser-of-uwebsocketsjs-cannot-do",
  )
  expect(anchorOf("Retries: `Idempotency-Key`")).toBe("retries-idempotency-key")
  expect(anchorOf("13.3 Pages and the API document")).toBe("133-pages-and-the-api-document")
})
