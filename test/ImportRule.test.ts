// The table of folders (test/map/Folders.ts) against the sources: every file is in a folder of the table, imports only
// folders its row names, no folder and no file leads back to itself, and the map in docs/architecture.md is the table's.
import { dirname } from "node:path"
import { expect, it } from "vitest"
import { circlesOf } from "./map/Circles.ts"
import { drawing, withDrawing } from "./map/Drawing.ts"
import { folders } from "./map/Folders.ts"
import { arrowsOf, importsOf, sourceFiles, specifiersOf, textOf } from "./map/ReadImports.ts"

const files = sourceFiles()
const imports = importsOf(files)
const arrows = arrowsOf(imports)

it("has every source file in a folder of the table", () => {
  expect(files.length).toBeGreaterThan(100)
  expect(files.filter((path) => folders[dirname(path)] === undefined)).toEqual([])
  expect(Object.keys(folders).filter((folder) => !files.some((path) => dirname(path) === folder))).toEqual([])
})

it("imports only what the table names, and the table names nothing else", () => {
  const wrong = arrows.filter(
    ({ path, target }) => !folders[dirname(path)]?.imports.includes(dirname(target)),
  )
  expect(wrong.map(({ path, target }) => `${path} imports ${target}`)).toEqual([])
  const used = new Set(arrows.map(({ path, target }) => `${dirname(path)} imports ${dirname(target)}`))
  const named = Object.entries(folders).flatMap(([folder, { imports }]) =>
    imports.map((target) => `${folder} imports ${target}`),
  )
  expect(named.filter((arrow) => !used.has(arrow))).toEqual([])
})

it("has no folder that leads back to itself", () => {
  const done = new Set<string>()
  const walk = (folder: string, way: ReadonlyArray<string>): ReadonlyArray<string> => {
    if (way.includes(folder)) return [[...way.slice(way.indexOf(folder)), folder].join(" → ")]
    if (done.has(folder)) return []
    const circles = (folders[folder]?.imports ?? []).flatMap((next) => walk(next, [...way, folder]))
    done.add(folder)
    return circles
  }
  expect(Object.keys(folders).flatMap((folder) => walk(folder, []))).toEqual([])
})

it("has no file that imports itself through others, types included", () => {
  expect(circlesOf(imports)).toEqual([])
})

it("finds circles of any length, and files that import themselves", () => {
  const arrow = (path: string, target: string) => ({ path, target })
  expect(circlesOf([arrow("a", "b"), arrow("a", "c"), arrow("b", "d"), arrow("c", "d")])).toEqual([])
  expect(
    circlesOf([arrow("e", "e"), arrow("z", "a"), arrow("b", "c"), arrow("a", "b"), arrow("c", "a")]),
  ).toEqual([["a", "b", "c"], ["e"]])
})

it("draws the table in docs/architecture.md", () => {
  const page = textOf("docs/architecture.md")
  expect(page).toBe(withDrawing(page, drawing(folders)))
})

it("keeps uWebSockets.js in transport and native engines in engine processes", () => {
  const only: Readonly<Record<string, RegExp>> = {
    "uWebSockets.js": /^src\/transport\//,
    "node-llama-cpp": /^engines\/llama\//,
    "onnxruntime-node": /^engines\//,
    "node:sqlite": /^src\/store\//,
  }
  // Runs in its own process, which prints whether they load and then ends.
  const probe = "src/cli/doctor/machine/nativeModuleMain.ts"
  const wrong = files.flatMap((path) =>
    (path === probe ? [] : specifiersOf(path))
      .filter((specifier) => only[specifier] !== undefined && !only[specifier].test(path))
      .map((specifier) => `${path} → ${specifier}`),
  )
  expect(wrong).toEqual([])
})

it("reads the environment in the files that are named here, each for its reason", () => {
  const readers: Readonly<Record<string, string>> = {
    "src/config/Config.ts": "every setting",
    "src/config/OtherVariables.ts":
      "variables of OpenTelemetry, CUDA and the model hub, and the switch of the fake adapters",
    "src/store/Store.ts": "commands on the store need its place and no other setting",
    "src/cli/shared/NodeClient.ts": "the key of a command that calls a node is no setting of the node",
    "src/web/api/Snippets.js": "the code that the playground shows reads it, the playground does not",
    "src/web/api/TalkSnippets.js": "the code that the playground shows reads it, the playground does not",
    "src/transport/uws/Uws.ts": "the native library reads its own variable when it is loaded",
    "actors/engine/EngineProcess.ts": "the environment of an engine process is made from it",
    "engines/shared/onnx/OnnxOptions.ts": "ONNX Runtime is told there to send nothing to its maker",
  }
  // Effect's Config reads it too, through names that begin like the settings.
  const reads = /process\.env\b|from "node:process"|\bConfig\.(?!Config\b)[A-Za-z]+\(\s*"[A-Z]/
  expect(files.filter((path) => reads.test(textOf(path))).toSorted()).toEqual(Object.keys(readers).toSorted())
})
