// The packages that `edgewise setup` installs for Chinese and Japanese are those that are tested, and those that the adapter names.
import { expect, it } from "vitest"
import { readingPackages } from "#cli/setup/ReadingPackages.ts"
import { adapterFacts } from "#engines/AdapterFacts.ts"
import { frontEndLack } from "#weights/FrontEnd.ts"
import packageJson from "../../../package.json" with { type: "json" }
import lock from "../../../package-lock.json" with { type: "json" }

const speech = { maxCharacters: 100, voices: [], cloning: false, aliases: {} }
const frontEnd = adapterFacts["kokoro-onnx"]?.frontEnd ?? {}

it.each([
  ["chinese", "zh"],
  ["japanese", "ja"],
] as const)("%s is the package for %s, as in the lock file, and has no dependencies", (kind, language) => {
  const [one, ...more] = readingPackages[kind]
  expect(more).toEqual([])
  expect(one?.name).toBe(frontEnd[language])
  expect(Object.entries(packageJson.devDependencies)).toContainEqual([one?.name, one?.version])
  const entries: Readonly<Record<string, object>> = lock.packages
  const entry = entries[`node_modules/${one?.name}`]
  expect(entry).toMatchObject({ version: one?.version, integrity: one?.integrity, dev: true })
  expect(entry).not.toHaveProperty("dependencies")
  const model = { adapter: "kokoro-onnx", speech: { ...speech, languages: [language] } }
  expect(frontEndLack(model, () => false)?.problem).toContain(`run edgewise setup ${kind}`)
})
