// Dockerfile, compose.yaml and the systemd unit name settings, paths and ports of this program, and nothing that it does not have.
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
const variables = Object.values(settings).map(({ variable }) => variable as string)

it("sets settings that exist, to values that are allowed", () => {
  const named = [dockerfile, compose, unit].flatMap((file) => file.match(/\bEDGEWISE_[A-Z_]+/g) ?? [])
  expect(named.length).toBeGreaterThan(5)
  expect(named.filter((name) => !variables.includes(name))).toEqual([])
  const given = [dockerfile, compose, unit].flatMap((file) =>
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
  expect(Number(/^TimeoutStopSec=(\d+)$/m.exec(unit)?.[1])).toBeGreaterThan(drain)
  expect(Number(/stop_grace_period: (\d+)s/.exec(compose)?.[1])).toBeGreaterThan(drain)
  expect(unit).toMatch(/^KillMode=mixed$/m)
  expect(unit).toMatch(/^OOMPolicy=continue$/m)
  expect(unit).not.toMatch(/^MemoryDenyWriteExecute=yes/m)
})
