// The corridor of docs/architecture.md as a test: which room may import which.
import { readdirSync, readFileSync } from "node:fs"
import { dirname, join, relative, resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { expect, it } from "vitest"

const root = fileURLToPath(new URL("..", import.meta.url))

/** Room of a file, by its folder. */
const rooms: Readonly<Record<string, string>> = {
  "src/domain": "domain",
  "src/audio": "audio",
  "src/confine": "confine",
  "src/api": "api",
  "src/transport": "transport",
  "src/store": "store",
  "src/cli": "cli",
  "src/telemetry": "telemetry",
  actors: "actors",
  engines: "engines",
}

/**
 * What a room may import besides itself. `store` names `actors` for one type (a deployment is what the registry
 * starts) and `engines` for the list of adapter names; neither direction is ever taken back.
 */
const allowed: Readonly<Record<string, ReadonlyArray<string>>> = {
  domain: [],
  confine: ["domain"],
  audio: ["domain", "confine"],
  engines: ["domain"],
  actors: ["domain", "audio", "confine", "engines"],
  store: ["domain", "actors", "engines"],
  api: ["domain", "audio", "actors", "engines", "store"],
  transport: ["domain", "audio", "api"],
  telemetry: ["domain", "api"],
  cli: ["domain", "audio", "confine", "actors", "engines", "api", "store", "transport", "telemetry", "main"],
}

const subpaths: Readonly<Record<string, string>> = {
  "#domain": "src/domain",
  "#audio": "src/audio",
  "#confine": "src/confine",
  "#api": "src/api",
  "#store": "src/store",
  "#transport": "src/transport",
  "#actors": "actors",
  "#engines": "engines",
}

const roomOf = (path: string): string => {
  const found = Object.keys(rooms).find((folder) => path.startsWith(`${folder}/`))
  return found === undefined ? "main" : rooms[found]!
}

const sources = (folder: string): ReadonlyArray<string> =>
  readdirSync(join(root, folder), { recursive: true, encoding: "utf8" })
    .filter((name) => name.endsWith(".ts"))
    .map((name) => join(folder, name))

const importsOf = (path: string): ReadonlyArray<string> => {
  const text = readFileSync(join(root, path), "utf8")
  return [...text.matchAll(/(?:from|import)\s*\(?\s*"([^"]+)"/g)].map(([, target]) => target!)
}

/** The repository path an import leads to, or undefined for a package. */
const targetOf = (path: string, specifier: string): string | undefined => {
  if (specifier.startsWith(".")) return relative(root, resolve(root, dirname(path), specifier))
  const [prefix = "", ...rest] = specifier.split("/")
  return subpaths[prefix] === undefined ? undefined : [subpaths[prefix], ...rest].join("/")
}

const files = [...sources("src"), ...sources("actors"), ...sources("engines")]

it("imports point one way through the corridor", () => {
  const wrong: Array<string> = []
  for (const path of files) {
    const room = roomOf(path)
    if (room === "main") continue
    for (const specifier of importsOf(path)) {
      const target = targetOf(path, specifier)
      if (target === undefined || target === "package.json") continue
      const into = roomOf(target)
      if (into !== room && !allowed[room]!.includes(into)) wrong.push(`${path} → ${target}`)
    }
  }
  expect(files.length).toBeGreaterThan(20)
  expect(wrong).toEqual([])
})

it("keeps uWebSockets.js in transport and native engines in engine processes", () => {
  const only: Readonly<Record<string, RegExp>> = {
    "uWebSockets.js": /^src\/transport\//,
    "node-llama-cpp": /^engines\/llama\//,
    "onnxruntime-node": /^engines\//,
    "node:sqlite": /^src\/store\//,
  }
  // A process of its own, which ends when it has told whether they load.
  const probe = "src/cli/doctor/machine/nativeModuleMain.ts"
  const wrong = files.flatMap((path) =>
    (path === probe ? [] : importsOf(path))
      .filter((specifier) => only[specifier] !== undefined && !only[specifier].test(path))
      .map((specifier) => `${path} → ${specifier}`),
  )
  expect(wrong).toEqual([])
})

it("reads the environment in Config alone", () => {
  // An engine process's environment is made by its host, and ONNX Runtime is told to keep to itself where it is called.
  const known = ["src/Config.ts", "actors/EngineProcess.ts", "engines/shared/onnx/OnnxSession.ts"]
  const wrong = files.filter(
    (path) => /process\.env\b/.test(readFileSync(join(root, path), "utf8")) && !known.includes(path),
  )
  expect(wrong.filter((path) => !path.startsWith("src/transport/"))).toEqual([])
})
