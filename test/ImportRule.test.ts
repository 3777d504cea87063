// The sources against the layers (test/map/Layers.ts): every folder of sources belongs to one and, like the folders of benches and models,
// is in the map of docs/architecture.md, files import only what their layer may, no folder and no file leads back to itself, and nothing is
// exported that no other file imports.
import { dirname } from "node:path"
import { expect, it } from "vitest"
import { circlesOf } from "./map/Circles.ts"
import { drawing, withDrawing } from "./map/Drawing.ts"
import { exportsOf, importedBy, unimported } from "./map/Exports.ts"
import { layerOf, layers } from "./map/Layers.ts"
import {
  arrowsOf,
  foldersIn,
  importsOf,
  scriptsIn,
  sourceFiles,
  specifiersOf,
  targetOf,
  textOf,
} from "./map/ReadImports.ts"

const files = sourceFiles()
const imports = importsOf(files)
const arrows = arrowsOf(imports)

/** Folders that hold no source of the program: these, and those directly in `bench` and `models`. */
const otherFolders = ["bin", "deploy", "docs", "pack", "test"]

it("has every folder of sources in a layer, and every folder in the map of docs/architecture.md", () => {
  const inUse = [...new Set(files.map((path) => dirname(path)))]
  expect(inUse.length).toBeGreaterThan(50)
  expect(inUse.filter((folder) => layerOf(folder) === undefined)).toEqual([])
  const page = textOf("docs/architecture.md")
  const mapped = [...page.slice(page.indexOf("## The map of folders")).matchAll(/^\| `([^`]+)` \|/gm)]
  const others = ["bench", "models"]
    .flatMap((folder) => foldersIn(folder))
    .filter((path) => !inUse.includes(path))
  expect(mapped.map(([, folder]) => folder).toSorted()).toEqual(
    [...inUse, ...otherFolders, ...others].toSorted(),
  )
})

it("imports only layers that the layer names", () => {
  const wrong = arrows.filter(({ path, target }) => {
    const [from, to] = [layerOf(dirname(path)), layerOf(dirname(target))]
    return from !== to && !from?.imports.includes(to?.name ?? "")
  })
  expect(wrong.map(({ path, target }) => `${path} imports ${target}`)).toEqual([])
})

it("names only layers that come before, and that its files import", () => {
  const used = new Set(
    arrows.map(
      ({ path, target }) => `${layerOf(dirname(path))?.name} imports ${layerOf(dirname(target))?.name}`,
    ),
  )
  const wrong = layers.flatMap(({ imports, name }, at) =>
    imports.filter(
      (target) =>
        !layers.slice(0, at).some((layer) => layer.name === target) || !used.has(`${name} imports ${target}`),
    ),
  )
  expect(wrong).toEqual([])
})

it("has no folder that leads back to itself", () => {
  const between = arrows.map(({ path, target }) => ({ path: dirname(path), target: dirname(target) }))
  expect(circlesOf(between)).toEqual([])
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

it("exports only what another file imports", () => {
  const paths = ["actors", "bench", "bin", "engines", "models", "pack", "src", "test"].flatMap(scriptsIn)
  expect(paths.length).toBeGreaterThan(1_000)
  const found = unimported(["vitest.config.ts", ...paths])
  // Pages of others import the voice modules (docs/web-modules.md).
  expect(found.filter((name) => !name.startsWith("src/web/voice/"))).toEqual([])
})

it("finds exports and imports in every form that is in use", () => {
  const text = [
    "export const a = 1",
    "export type B = typeof a",
    "export abstract class C {}",
    'export { d as e } from "./D.ts"',
    'import { type F, g as h } from "./F.ts"',
    'import * as All from "./I.ts"',
    "h({ ...All.j, k: All.l.m })",
    'await import("./N.ts")',
  ].join("\n")
  expect(exportsOf(text)).toEqual(["a", "B", "C", "e"])
  expect(importedBy(text).map(({ name, specifier }) => `${specifier} ${name}`)).toEqual([
    "./D.ts d",
    "./F.ts F",
    "./F.ts g",
    "./I.ts j",
    "./I.ts l",
    "./N.ts *",
  ])
})

it("has the picture of the layers in docs/architecture.md", () => {
  const page = textOf("docs/architecture.md")
  expect(page).toBe(withDrawing(page, drawing(layers)))
})

it("keeps uWebSockets.js in transport and native engines in engine processes", () => {
  const only: Readonly<Record<string, RegExp>> = {
    "uWebSockets.js": /^src\/transport\//,
    "node-llama-cpp": /^engines\/llama\//,
    koffi: /^engines\/llama\/native\/Koffi\.ts$/,
    "onnxruntime-node": /^engines\//,
    "node:sqlite": /^src\/store\//,
  }
  // Runs in its own process, which prints whether they load and then ends.
  const probe = "src/cli/doctor/machine/nativeModuleMain.ts"
  const benches = scriptsIn("bench").filter((path) => specifiersOf(path).includes("koffi"))
  const wrong = [...files, ...benches].flatMap((path) =>
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
      "variables of OpenTelemetry, CUDA, AWS and the model hub, and the switch of the fake adapters",
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

it("names modules of Effect's HTTP API, whose index loads 5 MB of documentation pages at every start", () => {
  const fromIndex = files.filter((path) => specifiersOf(path).includes("effect/http-api"))
  expect(fromIndex).toEqual([])
})

/** Sources that a file reaches by imports, itself included. */
const reachedFrom = (path: string, seen = new Set<string>()): ReadonlySet<string> => {
  if (!seen.has(path)) {
    seen.add(path)
    for (const { target } of importsOf([path])) reachedFrom(target, seen)
  }
  return seen
}

/** Lines that wait outside of a function. The sources are formatted by one tool: what is indented is in a function or a block. */
const awaitsIn = (text: string): ReadonlyArray<string> => [
  ...[...text.matchAll(/^(?!\/\/)\S.*\bawait\b.*$/gm)]
    .map(([line]) => line)
    .filter((line) => !/\basync\b/.test(line)),
  ...[...text.matchAll(/^(?:if|for|while|do|try|switch)\b.*\{$[\s\S]*?^\}/gm)]
    .map(([block]) => block)
    .filter((block) => /\bawait\b/.test(block)),
]

it("has no thread whose program waits outside of a function: V8 ends the whole process if such a thread is ended while its program begins", () => {
  const programs = files.flatMap((path) => {
    const text = textOf(path)
    if (!/\bnew Worker\(|\bconst program = new URL\(/.test(text)) return []
    return [...text.matchAll(/new URL\("(\.[^"]+\.ts)", import\.meta\.url\)/g)].map(
      ([, specifier = ""]) => targetOf(path, specifier)!,
    )
  })
  expect(programs.length).toBeGreaterThanOrEqual(8)
  const waiting = [...new Set(programs)].flatMap((program) =>
    [...reachedFrom(program)].flatMap((path) =>
      awaitsIn(textOf(path)).map((line) => `${program}: ${path}: ${line}`),
    ),
  )
  expect(waiting).toEqual([])
  expect(
    awaitsIn("const a = await b()\nconst f = async () => await c()\nif (d) {\n  await e()\n}\n// await\n"),
  ).toEqual(["const a = await b()", "if (d) {\n  await e()\n}"])
})
