// The models of a node without a catalog of its own: added ones before the built-in ones, which step aside id by id.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import fc from "fast-check"
import { afterAll, beforeEach, expect, it } from "vitest"
import { builtInCatalog } from "#config/settings/NodeSettings.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { addedModels, originOf, readModels, withBuiltIn, writtenCatalog } from "#weights/NodeCatalog.ts"

const dataDir = mkdtempSync(join(tmpdir(), "edgewise-added-"))
afterAll(() => rmSync(dataDir, { recursive: true, force: true }))
beforeEach(() => rmSync(addedModels(dataDir), { force: true }))

const settings = { catalog: builtInCatalog, dataDir }
const ids = async (more: object = {}) =>
  (await Effect.runPromise(readModels({ ...settings, ...more }))).map(
    ({ entry, file }) => [entry.id, originOf(file)] as const,
  )

const entry = (id: string, more: object = {}) => ({
  id,
  kind: "text",
  adapter: "fake",
  ownedBy: "t",
  created: 1,
  files: {},
  price: {},
  ...more,
})
const write = (...models: ReadonlyArray<object>) =>
  writeFileSync(addedModels(dataDir), `// mine\n${JSON.stringify({ models })}`)

it("are the built-in ones alone until one is added", async () => {
  const all = await ids()
  expect(all.every(([, from]) => from === "built-in")).toBe(true)
  write()
  expect(await ids()).toEqual(all)
})

it("of a built-in id or alias replace the built-in model; the others stay", async () => {
  const before = await ids()
  write(
    entry("llm-3.5-9b"),
    entry("mine", { aliases: ["tts-82m"], files: { weights: { source: "here.bin" } } }),
  )
  const after = await ids()
  expect(after.slice(0, 2)).toEqual([
    ["llm-3.5-9b", addedModels(dataDir)],
    ["mine", addedModels(dataDir)],
  ])
  const gone = ["llm-3.5-9b", "tts-82m"]
  expect(after.slice(2)).toEqual(before.filter(([id]) => !gone.includes(id)))
  // Its paths are those of the data directory.
  const models = await Effect.runPromise(readModels(settings))
  expect(models[1]?.entry.files.weights?.source).toBe(join(dataDir, "here.bin"))
})

it("may name a built-in model as the draft of captions, and nothing else", async () => {
  const ears = (draft: string) =>
    entry("ears", { kind: "transcription", adapter: "fake-transcription", transcription: { draft } })
  write(ears("stt-large-v3-turbo"))
  expect((await ids())[0]?.[0]).toBe("ears")
  write(ears("other"))
  await expect(ids()).rejects.toThrow("is not a model of this catalog")
})

it("a catalog of the operator's own stands alone, and is the one that is written", async () => {
  const catalog = join(dataDir, "own.json")
  writeFileSync(catalog, JSON.stringify({ models: [entry("own")] }))
  write(entry("added"))
  expect(await ids({ catalog })).toEqual([["own", catalog]])
  expect(writtenCatalog({ catalog, dataDir })).toBe(catalog)
  expect(writtenCatalog(settings)).toBe(addedModels(dataDir))
})

it("adding and removing brings back exactly what was there", () => {
  const names = fc.uniqueArray(fc.constantFrom("a", "b", "c", "d"), { maxLength: 4 })
  const model = (id: string, aliases: ReadonlyArray<string> = []) =>
    ({ ...entry(id), aliases }) as unknown as ModelEntry
  fc.assert(
    fc.property(names, names, names, (built, added, aliases) => {
      const builtIn = built.map((id) => model(id))
      const own = added.map((id, at) =>
        model(id, at === 0 ? aliases.filter((one) => !added.includes(one)) : []),
      )
      const all = withBuiltIn(own, builtIn)
      expect(new Set(all.map(({ id }) => id)).size).toBe(all.length)
      expect(all.slice(0, own.length)).toEqual(own)
      expect(withBuiltIn([], builtIn)).toEqual(builtIn)
    }),
  )
})
