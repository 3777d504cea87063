import { join } from "node:path"
import fc from "fast-check"
import { expect, it } from "vitest"
import { isWithin, weightsGrant } from "#domain/process/Confinement.ts"

/** Names of files and folders, also ones that begin with dots. */
const name = fc.stringMatching(/^[.a-z0-9-]{1,6}$/).filter((text) => text !== "." && text !== "..")
const names = fc.array(name, { maxLength: 4 })

it("a path is within a folder exactly if its first names are the folder's", () => {
  fc.assert(
    fc.property(names, names, (folder, path) => {
      const begins = folder.every((each, nth) => path[nth] === each)
      expect(isWithin(join("/", ...folder), join("/", ...path))).toBe(begins)
    }),
  )
})

it("siblings, parents and folders whose names begin alike are not within", () => {
  for (const path of ["/a", "/", "/a/c", "/a/b2", "/a/..b", "/a/c/b"])
    expect(isWithin("/a/b", path)).toBe(false)
  for (const path of ["/a/b", "/a/b/c", "/a/b/..c", "/a/b/..c/d"]) expect(isWithin("/a/b", path)).toBe(true)
  expect(isWithin("/", "/anything")).toBe(true)
})

it("weights are granted alone, beside a folder that must stay closed and within it", () => {
  const closed = ["/data", "/home/me"]
  for (const path of ["/home/me/model.gguf", "/home/me/voices", "/data/weights/a.gguf", "/home/you", "/srv"])
    expect(weightsGrant(path, closed)).toEqual({ path, access: "read" })
  for (const path of ["/", "/home", "/home/me", "/data"]) expect(weightsGrant(path, closed)).toBeUndefined()
})
