// Settings that need more than their own text to be checked: variables that only look like settings, regions, and the place of uploads.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { catalogRegions, environmentMistakes, load } from "#config/Config.ts"
import { s3Access } from "#config/OtherVariables.ts"
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

describe("a place of shared uploads", () => {
  const uploads = (text: string) =>
    Effect.runPromise(
      Effect.match(load({ uploads: text, databaseUrl: "postgres://u:p@db/edgewise" }, {}), {
        onSuccess: (config) => config.uploads,
        onFailure: ({ message }) => message,
      }),
    )

  it("is a folder or a bucket", async () => {
    for (const text of [
      "/srv/uploads",
      "uploads",
      "s3://a-bucket",
      "s3://a.bucket/a/b_c/",
      "s3://bucket/a?encryption=aws:kms",
      "s3://bucket?encryption=none",
    ])
      expect(await uploads(text)).toBe(text)
    for (const text of [
      "S3://bucket",
      "gs://bucket/a",
      "s3://",
      "s3:///a",
      "s3://Bucket",
      "s3://bucket//a",
      "s3://bucket/a/../b",
      "s3://bucket/.",
      "s3://bucket/a b",
      "s3://bucket/a#b",
      "s3://bucket?encryption=",
      "s3://bucket?encryption=toString",
      "s3://bucket?acl=public",
      "s3://key:secret@bucket/a",
    ]) {
      const message = await uploads(text)
      expect(message, text).toMatch(/^EDGEWISE_UPLOADS: ".*" is not allowed; allowed is a path, or s3:/)
      expect(message).not.toContain("secret")
    }
  })

  it("that is a bucket needs AWS' variables, whose values are never shown", async () => {
    const access = (env: NodeJS.ProcessEnv) =>
      Effect.runPromise(
        Effect.catch(
          Effect.map(s3Access(env), (found): unknown => found),
          ({ message }) => Effect.succeed(message),
        ),
      )
    const keys = { AWS_ACCESS_KEY_ID: "AKID", AWS_SECRET_ACCESS_KEY: "s3cret" }
    expect(await access(keys)).toEqual({
      accessKeyId: "AKID",
      secretAccessKey: "s3cret",
      sessionToken: undefined,
      region: "us-east-1",
      endpoint: undefined,
    })
    const all = {
      ...keys,
      AWS_SESSION_TOKEN: "token",
      AWS_REGION: "eu-central-1",
      AWS_DEFAULT_REGION: "us-west-2",
      AWS_ENDPOINT_URL: "https://other",
      AWS_ENDPOINT_URL_S3: "http://minio:9000/",
    }
    expect(await access(all)).toMatchObject({
      sessionToken: "token",
      region: "eu-central-1",
      endpoint: "http://minio:9000",
    })
    for (const [change, variable] of [
      [{ AWS_ACCESS_KEY_ID: "" }, "AWS_ACCESS_KEY_ID"],
      [{ AWS_SECRET_ACCESS_KEY: "s3cret\n" }, "AWS_SECRET_ACCESS_KEY"],
      [{ AWS_SESSION_TOKEN: "s3cret token" }, "AWS_SESSION_TOKEN"],
      [{ AWS_REGION: "eu/s" }, "AWS_REGION"],
      [{ AWS_ENDPOINT_URL_S3: "https://user:s3cret@minio" }, "AWS_ENDPOINT_URL_S3"],
      [{ AWS_ENDPOINT_URL_S3: "minio:9000" }, "AWS_ENDPOINT_URL_S3"],
      [{ AWS_ENDPOINT_URL: "https://minio/path" }, "AWS_ENDPOINT_URL"],
    ] as const) {
      const { AWS_ENDPOINT_URL_S3: _, ...rest } = all
      const message = await access({ ...rest, ...change })
      expect(message).toMatch(new RegExp(`^${variable}: ".*" is not allowed; `))
      expect(message).not.toContain("s3cret")
    }
  })
})
