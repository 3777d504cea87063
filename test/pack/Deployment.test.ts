// Dockerfile, compose files and systemd units name settings, paths and ports of this program, and nothing that it does not have.
import { existsSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { expect, it } from "vitest"
import { settings } from "#config/Settings.ts"
import { modelPaths } from "../../pack/Files.ts"
import { root } from "../map/ReadImports.ts"

const text = (path: string): string => readFileSync(join(root, path), "utf8")
const dockerfile = text("Dockerfile")
const compose = text("compose.yaml")
const unit = text("deploy/edgewise.service")
const threeNodes = text("deploy/three-nodes.compose.yaml")
const nodeUnit = text("deploy/edgewise@.service")
const variables = Object.values(settings).map(({ variable }) => variable as string)

it("sets settings that exist, to values that are allowed", () => {
  const named = [dockerfile, compose, unit, threeNodes, nodeUnit].flatMap(
    (file) => file.match(/\bEDGEWISE_[A-Z_]+/g) ?? [],
  )
  expect(named.length).toBeGreaterThan(5)
  expect(named.filter((name) => !variables.includes(name))).toEqual([])
  const given = [dockerfile, compose, unit, threeNodes, nodeUnit].flatMap((file) =>
    [...file.matchAll(/^\s*(?:ENV |Environment=)?(EDGEWISE_[A-Z_]+)(?:=|: )([^\s$\\]+)/gm)].map(
      ([, name = "", value = ""]) => [name, value] as const,
    ),
  )
  expect(given.map(([name]) => name)).toEqual(
    expect.arrayContaining(["EDGEWISE_DECODER", "EDGEWISE_HOST", "EDGEWISE_ROLES", "EDGEWISE_DATA_DIR"]),
  )
  const refused = given.filter(([name, value]) => {
    const setting = Object.values(settings).find(({ variable }) => variable === name)
    return setting?.parse(value.replace(/\$\{[^}]*\}/g, "x")) === undefined
  })
  expect(refused).toEqual([])
})

it("copies what exists, and the ignore file lets through exactly what is copied", () => {
  const copied = [...dockerfile.matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(([, paths = ""]) =>
    paths.split(" "),
  )
  const allowed = [...text(".dockerignore").matchAll(/^!(.+)$/gm)].map(([, path = ""]) => path)
  expect([...copied, ...allowed].filter((path) => !existsSync(join(root, path)))).toEqual([])
  const isWithin = (path: string, folder: string) => `${path}/`.startsWith(`${folder}/`)
  expect(copied.filter((folder) => !allowed.some((path) => isWithin(path, folder)))).toEqual([])
  expect(allowed.filter((path) => !copied.some((folder) => isWithin(path, folder)))).toEqual([])
  expect(text(".dockerignore")).toMatch(/^\*$/m)
})

it("has the files of every built-in model, as the package has", () => {
  const named = [...text("models/catalog.json").matchAll(/"([\w-]+)\/[^"]+\.(?:gguf|onnx|bin|json)"/g)]
  const folders = [...new Set(named.map(([, folder]) => `models/${folder}`))].toSorted()
  expect(folders.length).toBeGreaterThan(3)
  expect([...modelPaths].toSorted()).toEqual(expect.arrayContaining(folders))
  const allowed = [...text(".dockerignore").matchAll(/^!(models.+)$/gm)].map(([, path = ""]) => path)
  expect(allowed.toSorted()).toEqual([...modelPaths].toSorted())
})

it("removes the packages that may not be passed on", () => {
  const { dependencies } = JSON.parse(text("package.json")) as { dependencies: Record<string, string> }
  expect(dependencies).toHaveProperty("node-av")
  expect(dockerfile).toMatch(/rm -r node_modules\/node-av node_modules\/@seydx/)
})

it("opens the ports of the roles", () => {
  const ports = [settings.port, settings.authPort, settings.routerPort].map(({ fallback }) => fallback)
  expect(/^EXPOSE (.+)$/m.exec(dockerfile)?.[1]).toBe(ports.join(" "))
  expect(compose).toContain(`127.0.0.1:${ports[0]}:${ports[0]}`)
})

it("gives a node time to drain, and leaves its engines to it", () => {
  const drain = settings.drainSeconds.fallback
  for (const file of [compose, threeNodes])
    expect(Number(/stop_grace_period: (\d+)s/.exec(file)?.[1])).toBeGreaterThan(drain)
  for (const file of [unit, nodeUnit]) {
    expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(file)?.[1])).toBeGreaterThan(drain)
    expect(file).toMatch(/^KillMode=mixed$/m)
    expect(file).toMatch(/^OOMPolicy=continue$/m)
    expect(file).not.toMatch(/^MemoryDenyWriteExecute=yes/m)
  }
})

it("has the same restrictions in both units", () => {
  const restrictions = (file: string) =>
    file
      .split("\n")
      .filter((line) => /^(?:Protect|Restrict|Private|Lock|System|Capab|Ambient|NoNew|UMask)/.test(line))
  expect(restrictions(unit).length).toBeGreaterThan(15)
  expect(restrictions(nodeUnit)).toEqual(restrictions(unit))
})

it("gives each of three nodes a data directory and a port of its own, and the same uploads", () => {
  expect([...threeNodes.matchAll(/^ {6}- (data-\w):\/data$/gm)].map(([, name]) => name)).toEqual([
    "data-a",
    "data-b",
    "data-c",
  ])
  expect([...threeNodes.matchAll(/127\.0\.0\.1:(\d+):8080/g)].map(([, port]) => port)).toEqual([
    "8080",
    "8180",
    "8280",
  ])
  expect(threeNodes.match(/^ {6}- uploads:\/uploads$/gm)).toHaveLength(4)
  const folder = /^RequiresMountsFor=(\S+)$/m.exec(nodeUnit)?.[1] ?? ""
  expect(nodeUnit).toContain(`\nEnvironment=EDGEWISE_UPLOADS=${folder}\n`)
  expect(nodeUnit).toContain(`\nReadWritePaths=${folder}\n`)
})
