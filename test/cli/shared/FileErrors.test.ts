// What commands say of files that cannot be read: words instead of Node's codes, and the path.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, it } from "vitest"
import { inWords, readableSize } from "#cli/shared/FileErrors.ts"
import { temporaryDir } from "../../support/process/TemporaryDir.ts"

const dir = temporaryDir()
afterAll(dir.remove)

const messageOf = (work: () => unknown): string => {
  try {
    work()
  } catch (cause) {
    return (cause as Error).message
  }
  return "nothing went wrong"
}

it("names the path once, and what is wrong with it", () => {
  const nowhere = join(dir.path, "nowhere.wav")
  const missing = messageOf(() => readFileSync(nowhere))
  expect(inWords(missing)).toBe(`${nowhere}: there is no such file or folder`)
  expect(inWords(`--data: ${nowhere}: ${missing}`)).toBe(
    `--data: ${nowhere}: there is no such file or folder`,
  )
  expect(inWords(messageOf(() => readFileSync(dir.path)))).toBe("is a folder, not a file")
  expect(inWords("ENOENT: no such file or directory, mkdir '/proc/none'")).toBe(
    "/proc/none: this folder cannot be made",
  )
  const inFile = join(dir.path, "file")
  writeFileSync(inFile, "")
  expect(inWords(messageOf(() => readFileSync(join(inFile, "a"))))).toMatch(/a part of this path is a file/)
})

it("leaves other messages as they are", () => {
  for (const message of ["", "no key", "connect ECONNREFUSED 127.0.0.1:1", "EWHAT: odd, open 'a'"])
    expect(inWords(message)).toBe(message)
})

it("has the size of a file that can be read, and refuses a folder by its name", () => {
  const file = join(dir.path, "three")
  writeFileSync(file, "abc")
  expect(readableSize(file)).toBe(3)
  const folder = join(dir.path, "folder")
  mkdirSync(folder)
  expect(messageOf(() => readableSize(folder))).toBe(`${folder}: is a folder, not a file`)
})
