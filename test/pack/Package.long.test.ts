// `npm pack`, and the package installed in an empty folder: its size, its version, and speech from it, on the Node that
// npm installed beside it. Without a registry: the packages that npm would fetch are copied from here.
import { execFileSync, spawnSync } from "node:child_process"
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
} from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { fetched, platforms } from "../../pack/Carried.ts"
import { root } from "../map/ReadImports.ts"
import { serveWith } from "./Serving.ts"

/** The limits of an installation, as `du -m` counts: goals. The repository's for its weights, and what it was for all, with 25 MB of weights. */
const most = { weights: 45, others: 425 }

const folder = mkdtempSync(join(tmpdir(), "edgewise-pack-"))
const modules = join(folder, "node_modules")
const own = join(modules, "edgewise")

interface Manifest {
  readonly dependencies: Readonly<Record<string, string>>
  readonly optionalDependencies: Readonly<Record<string, string>>
}
const read = (path: string): Manifest => JSON.parse(readFileSync(path, "utf8")) as Manifest
const sourceManifest = readFileSync(join(root, "package.json"), "utf8")

const files = (path: string): ReadonlyArray<string> =>
  readdirSync(path, { recursive: true, withFileTypes: true, encoding: "utf8" })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))

beforeAll(() => {
  execFileSync("npm", ["pack", "--pack-destination", folder, "--loglevel=error"], {
    cwd: root,
    stdio: "pipe",
  })
  mkdirSync(own, { recursive: true })
  const tarball = readdirSync(folder).find((name) => name.endsWith(".tgz")) ?? ""
  execFileSync("tar", ["-xzf", join(folder, tarball), "-C", own, "--strip-components=1"])
  const { dependencies, optionalDependencies } = read(join(own, "package.json"))
  for (const name of [...Object.keys(dependencies), ...Object.keys(optionalDependencies), "@swc/helpers"]) {
    const installed = join(root, "node_modules", name)
    if (!existsSync(installed)) continue
    mkdirSync(dirname(join(modules, name)), { recursive: true })
    cpSync(installed, join(modules, name), { recursive: true })
  }
  execFileSync(process.execPath, [join(own, "bin", "trim.js")])
})

afterAll(() => rmSync(folder, { recursive: true, force: true }))

const launcher = join(own, "bin", "edgewise.js")

describe("the package", () => {
  it("leaves the repository as it was", () => {
    expect(readFileSync(join(root, "package.json"), "utf8")).toBe(sourceManifest)
    expect(existsSync(join(root, "app"))).toBe(false)
  })

  it("has no TypeScript of the program, no test, no training, and the texts that licences ask for", () => {
    const paths = files(own).map((path) => path.slice(own.length + 1))
    expect(paths.filter((path) => path.endsWith(".ts") && !path.includes("node_modules"))).toEqual([])
    expect(
      paths.filter((path) =>
        /^(?:app\/)?(?:test|bench\/(?!harness\/)|pack|engines\/grammar\/test|src\/web\/voice\/test)\b|models\/(?:train|eval|test)\//.test(
          path,
        ),
      ),
    ).toEqual([])
    for (const path of ["LICENSE", "NOTICE", "README.md", "app/LICENCES.md"]) expect(paths).toContain(path)
    for (const name of fetched)
      expect(paths.filter((path) => path.includes(`node_modules/${name}/`))).toEqual([])
  })

  it("takes less than 425 MB when it is installed, and 45 for the weights", () => {
    const megabytes = (path: string): number =>
      files(path).reduce((sum, file) => sum + statSync(file).blocks * 512, 0) / 1024 ** 2
    const weights = megabytes(join(own, "app", "models"))
    expect(weights).toBeLessThan(most.weights)
    expect(megabytes(modules) - weights).toBeLessThan(most.others)
  })

  it("says for npm which systems it serves, so that npm refuses it elsewhere", () => {
    expect(JSON.parse(readFileSync(join(own, "package.json"), "utf8"))).toMatchObject(platforms)
  })

  it("knows its commit", () => {
    const printed = execFileSync(process.execPath, [launcher, "--version"], { cwd: folder, encoding: "utf8" })
    expect(printed).toMatch(/^edgewise v\d+\.\d+\.\d+ \(([0-9a-f]{12}(-dirty)?|unknown)\)$/m)
  })

  it("names the command that installs the library of calls where they are switched on without it", () => {
    const ended = spawnSync(process.execPath, [launcher, "serve", "--data-dir", join(folder, "calls")], {
      cwd: folder,
      encoding: "utf8",
      env: { ...process.env, EDGEWISE_WEBRTC_PORT: "40100" },
    })
    expect(ended.status).toBe(1)
    expect(ended.stderr).toContain("run edgewise setup webrtc")
  })
})

it("speaks, transcribes and writes, from the launcher to its end", async () => {
  const node = await serveWith(process.execPath, [launcher], folder)
  try {
    await node.speakAndTranscribe()
    expect(await node.answerInJson()).toHaveProperty("ok")
    expect(await node.end()).toBe(0)
  } finally {
    await node.kill()
  }
})
