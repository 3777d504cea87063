// `edgewise setup` from tarballs in a folder, without a registry: npm checks the hash, and a failure leaves nothing behind.
import { execFileSync } from "node:child_process"
import { createHash } from "node:crypto"
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, Exit } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { installPackages, tarballName } from "#cli/setup/InstallPackages.ts"

let root = ""
let integrity = ""
const one = { name: "@scope/library", version: "1.2.3", downloadBytes: 1, installedBytes: 1 }

beforeAll(() => {
  root = mkdtempSync(join(tmpdir(), "edgewise-setup-"))
  const source = join(root, "source")
  mkdirSync(source)
  const manifest = { name: one.name, version: one.version, scripts: { postinstall: "touch ran" } }
  writeFileSync(join(source, "package.json"), JSON.stringify(manifest))
  writeFileSync(join(source, "library.so"), "native code")
  execFileSync("npm", ["pack", "--pack-destination", root, "--loglevel=silent"], { cwd: source })
  const tarball = readFileSync(join(root, tarballName({ ...one, integrity: "" })))
  integrity = `sha512-${createHash("sha512").update(tarball).digest("base64")}`
})
afterAll(() => rmSync(root, { recursive: true, force: true }))

it("installs a package with the wanted hash, without running its scripts", async () => {
  const modules = join(root, "good", "node_modules")
  mkdirSync(modules, { recursive: true })
  await Effect.runPromise(installPackages([{ ...one, integrity }], modules, root))
  expect(readdirSync(join(modules, one.name)).toSorted()).toEqual(["library.so", "package.json"])
  expect(readdirSync(join(root, "good"))).toEqual(["node_modules"])
  // Again, over what is there.
  await Effect.runPromise(installPackages([{ ...one, integrity }], modules, root))
  expect(readFileSync(join(modules, one.name, "library.so"), "utf8")).toBe("native code")
})

it("refuses another hash and leaves nothing", async () => {
  const modules = join(root, "bad", "node_modules")
  mkdirSync(modules, { recursive: true })
  const wrong = `sha512-${Buffer.alloc(64, 1).toString("base64")}`
  const exit = await Effect.runPromiseExit(installPackages([{ ...one, integrity: wrong }], modules, root))
  expect(Exit.isFailure(exit) ? String(exit.cause) : "").toMatch(/integrity|sha512/i)
  expect(readdirSync(modules)).toEqual([])
  expect(readdirSync(join(root, "bad"))).toEqual(["node_modules"])
})

it("says that a tarball is missing", async () => {
  const modules = join(root, "none", "node_modules")
  mkdirSync(modules, { recursive: true })
  // npm's cache may have a package whose hash it knows.
  const unknown = `sha512-${Buffer.alloc(64, 2).toString("base64")}`
  const from = join(root, "empty")
  const exit = await Effect.runPromiseExit(installPackages([{ ...one, integrity: unknown }], modules, from))
  expect(Exit.isFailure(exit) ? String(exit.cause) : "").toContain("ENOENT")
  expect(readdirSync(join(root, "none"))).toEqual(["node_modules"])
})
