// bin/edgewise.js in a made-up checkout: on which Node it runs the program, and the line where there is none.
import { type SpawnSyncReturns, spawnSync } from "node:child_process"
import { chmodSync, cpSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { afterEach, beforeEach, expect, it } from "vitest"
import { root } from "../map/ReadImports.ts"

let folder = ""
const launcher = () => join(folder, "bin", "edgewise.js")
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "edgewise-launcher-"))
  for (const name of ["bin", "src"]) mkdirSync(join(folder, name))
  for (const name of ["edgewise.js", "child.js"]) cpSync(join(root, "bin", name), join(folder, "bin", name))
  writeFileSync(join(folder, "package.json"), '{ "type": "module" }')
  const program =
    "console.log(JSON.stringify([process.pid as number, ...process.argv.slice(2)])); process.exitCode = 3"
  writeFileSync(join(folder, "src", "main.ts"), program)
})
afterEach(() => rmSync(folder, { recursive: true, force: true }))

const launch = (...flags: ReadonlyArray<string>): SpawnSyncReturns<string> =>
  spawnSync(process.execPath, [...flags, launcher(), "serve", "--port", "1"], {
    env: { ...process.env, EDGEWISE_RESTART: "false" },
    encoding: "utf8",
  })
const quiet = "--disable-warning=ExperimentalWarning"

/** Makes the launcher believe that it runs on another version. */
const as = (version: string): string =>
  `--import=data:text/javascript,${encodeURIComponent(
    `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } })`,
  )}`

it("runs the program in its own process where this Node is the right one, else as a child, with its exit status", () => {
  const own = launch(quiet)
  expect([own.status, JSON.parse(own.stdout)]).toEqual([3, [own.pid, "serve", "--port", "1"]])
  const child = launch()
  expect([child.status, JSON.parse(child.stdout).slice(1)]).toEqual([3, ["serve", "--port", "1"]])
  expect(JSON.parse(child.stdout)[0]).not.toBe(child.pid)
})

const install = (node: string, make: (path: string) => void): void => {
  const folderOfNode = join(folder, "node_modules", node)
  mkdirSync(join(folderOfNode, "bin"), { recursive: true })
  writeFileSync(join(folderOfNode, "package.json"), "{}")
  make(join(folderOfNode, "bin", "node"))
}
const beside = `node-${process.platform}-${process.arch}`

it("prefers the Node that is installed beside it, whatever this one is", () => {
  install(beside, (path) => symlinkSync(process.execPath, path))
  expect(launch(as("20.11.0")).status).toBe(3)
})

it("says which Node to install where this one is too old", () => {
  for (const version of ["20.11.0", "22.17.1"]) {
    const { status, stderr, stdout } = launch(quiet, as(version))
    expect([status, stdout]).toEqual([1, ""])
    expect(stderr).toMatch(
      new RegExp(`^edgewise: needs Node 22.18 or later, and this is ${version}: install one.*\n$`),
    )
  }
})

it("uses this Node where the installed one does not start, as without glibc, and says what to install else", () => {
  install(beside, (path) => {
    writeFileSync(path, "#!/nowhere/ld-musl\n")
    chmodSync(path, 0o755)
  })
  expect(launch(quiet).status).toBe(3)
  const old = launch(quiet, as("20.11.0"))
  expect([old.status, old.stderr]).toEqual([
    1,
    expect.stringMatching(/^edgewise: \S+ does not start \(ENOENT\): install Node 22\.18 or later\n$/),
  ])
})
