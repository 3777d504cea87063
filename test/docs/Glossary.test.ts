// docs/glossary.md names files that exist and each term once, and no text of the project uses a word for persons for data.
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"

const root = fileURLToPath(new URL("../../", import.meta.url))
const read = (path: string): string => readFileSync(`${root}${path}`, "utf8")

/** The folders of the project, and the files beside them. Other folders of a checkout are not part of it. */
const folders = [".ci", "actors", "bench", "docs", "engines", "models", "src", "test"]
const files: ReadonlyArray<string> = [
  ...readdirSync(root, { withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ name }) => name),
  ...folders.flatMap((folder) =>
    readdirSync(`${root}${folder}`, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => `${entry.parentPath}/${entry.name}`.slice(root.length)),
  ),
]

describe("the glossary", () => {
  const rows = read("docs/glossary.md")
    .split("\n")
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .filter((cells) => cells.length === 5 && cells[1] !== "term" && cells[1] !== "---")

  it("has terms", () => {
    expect(rows.length).toBeGreaterThan(50)
  })

  it("has each term once", () => {
    const terms = rows.map((cells) => cells[1])
    expect(terms.filter((term, i) => terms.indexOf(term) !== i)).toEqual([])
  })

  it("names one existing file per term", () => {
    const known = new Set(files)
    const wrong = rows.filter((cells) => !known.has(/^`([^`]+)`$/.exec(cells[3] ?? "")?.[1] ?? ""))
    expect(wrong.map((cells) => `${cells[1]}: ${cells[3]}`)).toEqual([])
  })

  it("explains each term in one sentence", () => {
    const wrong = rows.filter(
      (cells) => !/^[`A-Z][^|]*\.$/.test(cells[2] ?? "") || /\. [A-Z]/.test(cells[2] ?? ""),
    )
    expect(wrong.map((cells) => cells[1])).toEqual([])
  })
})

/** Words for persons, which comments and docs used for data. Also inside names, such as `nobodysNotes`. */
const banned = /\b(?:nobody|whoever|somebody|whom|goodbye)\b|\b(?:nobodys|Nobody|Whoever|Somebody)(?=[A-Z])/i

/**
 * Files in which the words are vocabulary: text that models are trained and evaluated with, question words, the name of a user
 * of the operating system, this test.
 */
const samples: ReadonlyArray<string> = [
  "models/eval/chat-answers.md",
  "models/eval/chat.json",
  "models/eval/free.txt",
  "models/eval/set.json",
  "models/train/text/patterns.txt",
  "models/train/text/phrases.txt",
  "models/train/text/turns.txt",
  "models/train/text/vocabulary.txt",
  "models/train/words/everyday.txt",
  "models/train/words/facts.txt",
  "models/train/words/wordings.txt",
  "models/train/words/knowledge.json",
  "models/train/words/refusals.txt",
  "models/train/words/slots.txt",
  "models/train/words/tools.json",
  "src/domain/activity/EndingWords.ts",
  "src/domain/language/SentenceRules.ts",
  "test/docs/Glossary.test.ts",
  "test/support/servers/PostgresProcess.ts",
]

const prose = /\.(?:ts|js|md|json|html|txt|py|pl|wat)$|(?:^|\/)(?:NOTICE|run)$/

it("no file of the project has a banned word", () => {
  const found = files
    .filter((path) => prose.test(path) && path !== "package-lock.json" && !samples.includes(path))
    .flatMap((path) =>
      read(path)
        .split("\n")
        .flatMap((line, i) => (banned.test(line) ? [`${path}:${i + 1}`] : [])),
    )
  expect(found).toEqual([])
})
