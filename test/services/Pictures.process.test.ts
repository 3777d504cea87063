// Pictures that a request names by their address, from a listener on loopback that only this test allows.
import { existsSync, readFileSync } from "node:fs"
import { createServer, type RequestListener } from "node:http"
import type { AddressInfo } from "node:net"
import { join } from "node:path"
import { Effect, Layer } from "effect"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { Decoder } from "#audio/Decoder.ts"
import type { FetchOptions } from "#fetch/PublicFetch.ts"
import { PictureUrl } from "#pictures/PictureUrl.ts"
import { decodedPictures } from "#services/Pictures.ts"
import { UploadDir } from "#services/TranscriptionUpload.ts"
import { plain, png } from "../support/pictures/PictureFiles.ts"
import { temporaryDir } from "../support/process/TemporaryDir.ts"

const file = png(20, 10, plain(255, 0, 0))
const dir = temporaryDir()
const never: Array<() => void> = []
const answers: Readonly<Record<string, RequestListener>> = {
  "/a.png": (_, response) => response.end(file),
  "/page.png": (_, response) => response.end("<html></html>"),
  "/missing.png": (_, response) => response.writeHead(404).end(),
  "/inside.png": (_, response) => response.writeHead(302, { location: "http://10.0.0.1/a.png" }).end(),
  "/file.png": (_, response) => response.writeHead(302, { location: "file:///etc/passwd" }).end(),
  "/endless.png": (_, response) => {
    const timer = setInterval(() => response.write("."), 50)
    never.push(() => clearInterval(timer))
  },
  "/huge.png": (_, response) => response.end(Buffer.alloc(30_000)),
}
const server = createServer((request, response) => answers[request.url ?? ""]?.(request, response))
let base = ""
beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve))
  base = `http://a.example:${(server.address() as AddressInfo).port}`
})
afterAll(() => {
  for (const stop of never) stop()
  server.closeAllConnections()
  server.close()
  dir.remove()
})

const uploads = join(dir.path, "uploads")
const layer = (options: Partial<FetchOptions>) =>
  Layer.mergeAll(
    Decoder.layer(),
    PictureUrl.layer({
      plainHttp: true,
      timeoutMs: 60_000,
      maxBytes: 20_000,
      resolve: () => Effect.succeed(["127.0.0.1"]),
      allowed: (address) => address === "127.0.0.1",
      ...options,
    }),
    Layer.succeed(UploadDir, uploads),
  )

const terms = { model: "m", user: "u", maxPixels: 50 }
const from = (url: string) => ({ field: "messages[0].content[1]", source: { url }, detail: "auto" as const })

/** The picture, its pixels and whether its file is gone at the end; or the field and problem of the refusal. */
const fetched = (url: string, options: Partial<FetchOptions> = {}) =>
  Effect.gen(function* () {
    const [picture, pixels] = yield* Effect.scoped(
      Effect.gen(function* () {
        const [first] = yield* decodedPictures([from(url)], terms)
        if (first === undefined) return yield* Effect.die("no picture")
        return [first, readFileSync(first.path)] as const
      }),
    )
    const { height, path, width } = picture
    return { width, height, pixel: [...pixels.subarray(0, 3)], left: existsSync(path) }
  }).pipe(
    Effect.catch((error) => Effect.succeed("problem" in error ? [error.field, error.problem] : [error._tag])),
    Effect.provide(layer(options)),
    Effect.runPromise,
  )

it("a picture of an address is fetched, scaled and removed with its request", async () => {
  expect(await fetched(`${base}/a.png`)).toEqual({ width: 10, height: 5, pixel: [255, 0, 0], left: false })
})

describe("is refused by its place:", () => {
  it.each<[path: string, problem: string, options?: Partial<FetchOptions>]>([
    ["/page.png", "is not a PNG, JPEG, WebP, GIF or BMP file"],
    ["/missing.png", "The URL answered with status 404"],
    ["/inside.png", "The URL does not lead to a public address"],
    ["/file.png", "The URL must be http or https"],
    ["/endless.png", "The URL did not answer in time", { timeoutMs: 300 }],
    ["/huge.png", "The file behind the URL is larger than 20000 bytes"],
    ["/a.png", "The URL must be https", { plainHttp: false }],
  ])("%s: %s", async (path, problem, options) => {
    expect(await fetched(base + path, options)).toEqual(["messages[0].content[1]", problem])
  })
})
