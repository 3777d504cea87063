// The table "Where to begin" of docs/architecture.md: every task once, and only files and folders that exist.
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { repository } from "../support/docs/GuideBlocks.ts"

const page = readFileSync(join(repository, "docs/architecture.md"), "utf8")
const section = /^## Where to begin\n(.*?)^## /ms.exec(page)?.[1] ?? ""
const rows = [...section.matchAll(/^\| ([A-Z][^|]*) \| (.*) \|$/gm)]

it("names an existing file for each task", () => {
  expect(rows.length).toBeGreaterThanOrEqual(20)
  const tasks = rows.map(([, task]) => task)
  expect(tasks.filter((task, i) => tasks.indexOf(task) !== i)).toEqual([])
  const paths = rows.map(([, , files = ""]) =>
    [...files.matchAll(/`([^`]*\/[^`]*)`/g)].map(([, path = ""]) => path),
  )
  expect(paths.filter((named) => named.length === 0)).toEqual([])
  expect(paths.flat().filter((path) => !existsSync(join(repository, path)))).toEqual([])
})
