// The packages that `edgewise setup` installs are those of the lock file, of the installed text engine, and those that an adapter names. A
// node or a catalog entry that cannot do without one that is missing is told the command.
import { expect, it } from "vitest"
import { projectOf } from "#cli/setup/InstallPackages.ts"
import { gpuKinds, gpuProblem, packagesOf, webrtcProblem } from "#cli/setup/Packages.ts"
import { adapterFacts } from "#engines/AdapterFacts.ts"
import { frontEndLack } from "#weights/FrontEnd.ts"
import packageJson from "../../../package.json" with { type: "json" }
import lock from "../../../package-lock.json" with { type: "json" }

it("has the version of the text engine, and a hash that npm can check", () => {
  for (const kind of gpuKinds)
    for (const { integrity, version } of packagesOf(kind, "linux-x64")) {
      expect(version).toBe(packageJson.dependencies["node-llama-cpp"])
      expect(integrity).toMatch(/^sha512-[A-Za-z0-9+/]{86}==$/)
    }
  expect(packagesOf("cuda", "linux-x64")).toHaveLength(2)
  expect(packagesOf("cuda", "linux-arm64")).toEqual([])
})

it("leaves out of the installation what it installs", () => {
  const left = packageJson.overrides["node-llama-cpp"]
  for (const kind of gpuKinds)
    for (const { name } of packagesOf(kind, "linux-x64")) expect(Object.keys(left)).toContain(name)
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
  const packages = packagesOf("vulkan", "linux-x64")
  const { lock: made, manifest } = projectOf(packages, undefined)
  expect(manifest.dependencies).toEqual({ "@node-llama-cpp/linux-x64-vulkan": packages[0]?.version })
  expect(made.packages["node_modules/@node-llama-cpp/linux-x64-vulkan"]).toEqual({
    version: packages[0]?.version,
    integrity: packages[0]?.integrity,
  })
  const local = projectOf(packages, "/files")
  const file = `file:/files/node-llama-cpp-linux-x64-vulkan-${packages[0]?.version}.tgz`
  expect(local.manifest.dependencies).toEqual({ "@node-llama-cpp/linux-x64-vulkan": file })
})

it("has the library of calls of the lock file, for the systems that the package serves", () => {
  for (const processor of ["x64", "arm64"] as const) {
    const name = `@node-datachannel/linux-${processor}-gnu` as const
    const { integrity, version } = lock.packages[`node_modules/${name}`]
    expect(packagesOf("webrtc", `linux-${processor}`)).toMatchObject([{ name, integrity, version }])
  }
})

it("names the command for a node that takes calls without the library", () => {
  expect(webrtcProblem({ webrtcPort: 40_100 }, () => false)).toBe(
    "EDGEWISE_WEBRTC_PORT=40100: the library of WebRTC calls is not installed: run edgewise setup webrtc",
  )
  expect(webrtcProblem({ webrtcPort: 40_100 }, () => true)).toBeUndefined()
  expect(webrtcProblem({ webrtcPort: 0 }, () => false)).toBeUndefined()
})

const speech = { maxCharacters: 100, voices: [], cloning: false, aliases: {} }
const frontEnd = adapterFacts["kokoro-onnx"]?.frontEnd ?? {}

it.each([
  ["chinese", "zh"],
  ["japanese", "ja"],
] as const)("%s is the package for %s, as in the lock file, and has no dependencies", (kind, language) => {
  const [one, ...more] = packagesOf(kind)
  expect(more).toEqual([])
  expect(one?.name).toBe(frontEnd[language])
  expect(Object.entries(packageJson.devDependencies)).toContainEqual([one?.name, one?.version])
  const entries: Readonly<Record<string, object>> = lock.packages
  const entry = entries[`node_modules/${one?.name}`]
  expect(entry).toMatchObject({ version: one?.version, integrity: one?.integrity, dev: true })
  expect(entry).not.toHaveProperty("dependencies")
  const model = { adapter: "kokoro-onnx", speech: { ...speech, languages: [language] } }
  expect(frontEndLack(model, () => false)?.problem).toContain(`run edgewise setup ${kind}`)
})
