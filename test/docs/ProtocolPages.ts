// docs/protocol as data for tests: its sections, endpoints and tables. Reads files; asserts nothing.
import { readdirSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"

const docs = (name: string): string => fileURLToPath(new URL(`../../docs/${name}`, import.meta.url))

interface Section {
  /** "7" of a chapter, "7.2" of a section. */
  readonly number: string
  /** The heading without its number. */
  readonly title: string
  /** Below docs/, e.g. "protocol/text.md". */
  readonly file: string
  readonly text: string
}

const sectionsOf = (file: string): ReadonlyArray<Section> =>
  readFileSync(docs(file), "utf8")
    .split(/^(?=##+ \d)/m)
    .flatMap((text) => {
      const [, number, title] = /^##+ (\d+(?:\.\d+)?) (.+)$/m.exec(text) ?? []
      return number === undefined || title === undefined ? [] : [{ number, title, file, text }]
    })

/** The page with the list of chapters. */
export const index = readFileSync(docs("protocol.md"), "utf8")

/** Chapters and sections of all pages. */
export const sections: ReadonlyArray<Section> = readdirSync(docs("protocol"))
  .toSorted()
  .flatMap((name) => sectionsOf(`protocol/${name}`))

const textOf = (number: string): string => {
  const found = sections.find((section) => section.number === number)
  if (found === undefined) throw new Error(`docs/protocol has no section ${number}`)
  return found.text
}

/** Rows of all tables of a section, as their cells; heads and the lines below them are left out. */
export const rowsOf = (number: string): ReadonlyArray<ReadonlyArray<string>> => {
  const lines = textOf(number).split("\n")
  return lines.flatMap((line, at) => {
    const isRow = line.startsWith("|") && !line.startsWith("|---") && !lines[at + 1]?.startsWith("|---")
    return isRow
      ? [
          line
            .split("|")
            .slice(1, -1)
            .map((cell) => cell.trim()),
        ]
      : []
  })
}

/** Texts between backticks. */
export const quotedIn = (text: string): ReadonlyArray<string> =>
  [...text.matchAll(/`([^`]+)`/g)].map(([, quoted]) => quoted!)

/** Names in the first column of a section's tables. */
export const namesOf = (number: string): ReadonlyArray<string> =>
  rowsOf(number).flatMap(([first = ""]) => quotedIn(first))

/** Endpoints in headings of these chapters, as "METHOD /path". */
export const endpointsOf = (chapters: ReadonlyArray<number>): ReadonlyArray<string> =>
  sections
    .filter(({ number }) => chapters.includes(Number(number.split(".")[0])))
    .flatMap(({ text }) =>
      [...text.matchAll(/^#{3,4} (?:\d+\.\d+ )?`([A-Z]+ \/[^`]*)`$/gm)].map(([, endpoint]) => endpoint!),
    )
