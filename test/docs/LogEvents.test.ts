// docs/operations.md names every event of the log, at its level, and no other.
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { expect, it } from "vitest"
import { logEvents } from "#domain/process/OperatorLog.ts"

const doc = readFileSync(fileURLToPath(new URL("../../docs/operations.md", import.meta.url)), "utf8")

it("every event has its row, at its level, and every row its event", () => {
  const table = doc.slice(doc.indexOf("| event | level |"), doc.indexOf("**The output of engines**"))
  const rows = table
    .split("\n")
    .slice(2)
    .flatMap((row) => {
      const [, names = "", level = ""] = row.split("|").map((cell) => cell.trim())
      return [...names.matchAll(/`([^`]+)`/g)].map(([, name]) => [name!, level.split(/[,;]/)[0]!] as const)
    })
  expect(Object.fromEntries(rows)).toEqual(logEvents)
})
