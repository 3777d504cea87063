// The packages that `edgewise setup` installs belong to the installed text engine, and a catalog entry without them is named.
import { expect, it } from "vitest"
import { gpuKinds, gpuPackages, gpuProblem } from "#cli/setup/GpuPackages.ts"
import { projectOf } from "#cli/setup/InstallPackages.ts"
import packageJson from "../../../package.json" with { type: "json" }

it("has the version of the text engine, and a hash that npm can check", () => {
  for (const kind of gpuKinds)
    for (const { integrity, version } of gpuPackages(kind, "linux-x64")) {
      expect(version).toBe(packageJson.dependencies["node-llama-cpp"])
      expect(integrity).toMatch(/^sha512-[A-Za-z0-9+/]{86}==$/)
    }
  expect(gpuPackages("cuda", "linux-x64")).toHaveLength(2)
  expect(gpuPackages("cuda", "linux-arm64")).toEqual([])
})

it("leaves out of the installation what it installs", () => {
  const left = packageJson.overrides["node-llama-cpp"]
  for (const kind of gpuKinds)
    for (const { name } of gpuPackages(kind, "linux-x64")) expect(Object.keys(left)).toContain(name)
})

it("names the command for an entry whose GPU libraries are missing", () => {
  const entry = (gpu: string) => ({ id: "my-model", options: { gpu } })
  const missing = () => false
  const linux = process.platform === "linux" && process.arch === "x64"
  expect(gpuProblem(entry("cuda"), missing)).toBe(
    linux
      ? 'my-model: options.gpu is "cuda", and the cuda libraries are not installed: run edgewise setup cuda'
      : `my-model: options.gpu is "cuda", and llama.cpp has no cuda libraries for ${process.platform} ${process.arch}`,
  )
  expect(gpuProblem(entry("cuda"), () => true)).toBeUndefined()
  for (const gpu of ["off", "auto", "metal"]) expect(gpuProblem(entry(gpu), missing)).toBeUndefined()
  expect(gpuProblem({ id: "other", options: {} }, missing)).toBeUndefined()
})

it("gives npm exact versions and hashes", () => {
  const packages = gpuPackages("vulkan", "linux-x64")
  const { lock, manifest } = projectOf(packages, undefined)
  expect(manifest.dependencies).toEqual({ "@node-llama-cpp/linux-x64-vulkan": packages[0]?.version })
  expect(lock.packages["node_modules/@node-llama-cpp/linux-x64-vulkan"]).toEqual({
    version: packages[0]?.version,
    integrity: packages[0]?.integrity,
  })
  const local = projectOf(packages, "/files")
  const file = `file:/files/node-llama-cpp-linux-x64-vulkan-${packages[0]?.version}.tgz`
  expect(local.manifest.dependencies).toEqual({ "@node-llama-cpp/linux-x64-vulkan": file })
})
