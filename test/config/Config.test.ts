// Settings that need more than their own text to be checked: variables that only look like settings, and regions.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { catalogRegions, environmentMistakes, load } from "#config/Config.ts"
import { settings } from "#config/Settings.ts"
import { builtInCatalog } from "#config/settings/NodeSettings.ts"

const dir = mkdtempSync(join(tmpdir(), "edgewise-config-"))
afterAll(() => rmSync(dir, { recursive: true, force: true }))
const regions = join(dir, "regions.json")
const place = { name: "Paris", country: "FR", latitude: 48.86, longitude: 2.35, endpoint: "https://par.test" }
writeFileSync(regions, JSON.stringify({ regions: [{ code: "par-01", ...place }] }))

describe("variables that look like settings", () => {
  it("are named with the nearest setting, and never with their value", () => {
    expect(
      environmentMistakes({ EDGEWISE_RATE_LIMT: "s3cret", EDGEWISE_DATADIR: "x", PATH: "/bin" }),
    ).toEqual([
      'EDGEWISE_DATADIR: is not a setting; did you mean "EDGEWISE_DATA_DIR"?',
      'EDGEWISE_RATE_LIMT: is not a setting; did you mean "EDGEWISE_RATE_LIMIT"?',
    ])
    expect(environmentMistakes({ EDGEWISE_COLOUR_OF_THE_WALL: "" })).toEqual([
      "EDGEWISE_COLOUR_OF_THE_WALL: is not a setting; see edgewise serve --help",
    ])
  })

  it("are not those that exist, also when empty", () => {
    const names = [...Object.values(settings).map(({ variable }) => variable), "EDGEWISE_API_KEY"]
    expect(environmentMistakes(Object.fromEntries(names.map((name) => [name, ""])))).toEqual([])
  })

  it("are printed 20 at most, in characters that a terminal can print", () => {
    const many = Object.fromEntries(Array.from({ length: 50 }, (_, n) => [`EDGEWISE_X${n}Y`, ""]))
    expect(environmentMistakes(many)).toHaveLength(21)
    expect(environmentMistakes(many).at(-1)).toBe("and 30 more unknown variables")
    expect(environmentMistakes({ [`EDGEWISE_\n${"x".repeat(5_000)}`]: "" })[0]).toMatch(/^EDGEWISE_\?x{90}: /)
  })
})

const region = (flags: Parameters<typeof load>[0]) =>
  Effect.runPromise(
    Effect.match(load(flags, {}), {
      onSuccess: (config) => config.region,
      onFailure: ({ message }) => message,
    }),
  )

describe("the region of a node", () => {
  it("is a built-in one, or local", async () => {
    expect(await region({ region: "yto-01" })).toBe("yto-01")
    expect(await region({ region: "local" })).toBe("local")
    expect(await region({ region: "par-01" })).toMatch(
      /^EDGEWISE_REGION: "par-01" is not allowed; .*local, yto-01/,
    )
  })

  it("is one of the regions file where that is set, and local", async () => {
    expect(await region({ region: "par-01", regions })).toBe("par-01")
    expect(await region({ region: "local", regions })).toBe("local")
    expect(await region({ region: "yto-01", regions })).toBe(
      `EDGEWISE_REGION: "yto-01" is not allowed; allowed is a region code of ${regions}: local, par-01`,
    )
    expect(await region({ region: "yto-01", regions: join(dir, "none.json") })).toContain(
      "there is no such regions file",
    )
  })
})

it("a catalog may name the regions in force; the product's own catalog is not held to a regions file", async () => {
  const codes = (catalog: string, file: string) =>
    Effect.runPromise(
      Effect.flatMap(load({ catalog, ...(file === "" ? {} : { regions: file }) }, {}), catalogRegions),
    )
  expect(await codes("/x.json", regions)).toEqual(["local", "par-01"])
  expect(await codes("/x.json", "")).toContain("sfo-02")
  expect(await codes(builtInCatalog, regions)).toBeUndefined()
})

it("several wrong settings are a line each", async () => {
  const error = await Effect.runPromise(Effect.flip(load({ port: "x", log: "xml", rateLimit: "1" }, {})))
  expect("lines" in error && error.lines).toEqual([
    'EDGEWISE_PORT: "x" is not allowed; allowed is an integer from 0 to 65535',
    'EDGEWISE_LOG: "xml" is not allowed; allowed is pretty or json',
  ])
})
