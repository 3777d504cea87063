// The playground: GET /, one page, and GET /playground/*, its scripts and styles. All are static files of src/web without a
// build step; the page talks to this node like any other client.
import { readdirSync, readFileSync } from "node:fs"
import { extname, join, relative } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { problemResponse } from "#http/ErrorBody.ts"
import { pathOf, playgroundFiles } from "#http/NotFound.ts"
import { PagesGroup } from "../declared/PagesApi.ts"
import { type Asset, answerWith, asksAgain, onceAsked, packed } from "../http/Asset.ts"

const folder = fileURLToPath(new URL("../../web", import.meta.url))

/** Content types of the files that are served. Other files of the folder, such as tsconfig.json, are not. */
const contentTypes: Readonly<Record<string, string>> = {
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
}

const pageHeaders = {
  // The page loads nothing from other origins and connects to its own origin only. Nothing in it is inline. `blob:` is for
  // recordings that it plays, `data:` for pictures of a message.
  "content-security-policy":
    "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; media-src blob:; img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
}

/** Paths of the served files from the folder, with `/` between their parts. */
const servedFiles: ReadonlyArray<string> = readdirSync(folder, { recursive: true, withFileTypes: true })
  .filter((entry) => entry.isFile() && Object.hasOwn(contentTypes, extname(entry.name)))
  .map((entry) => relative(folder, join(entry.parentPath, entry.name)).replaceAll("\\", "/"))

/** Reads a file at its first request. */
const assetOf = (path: string) => onceAsked(Effect.suspend(() => packed(readFileSync(join(folder, path)))))

export const Playground = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const page = yield* assetOf("index.html")
    const files = new Map<string, Effect.Effect<Asset>>()
    for (const path of servedFiles) {
      const file = yield* assetOf(path)
      files.set(`/playground/${path}`, file)
      // Pages of others import the voice modules without the folder's name in the address (docs/web-modules.md).
      if (path.startsWith("voice/")) files.set(`/playground/${path.slice("voice/".length)}`, file)
    }

    yield* router.add(
      "GET",
      PagesGroup.endpoints.playground.path,
      answerWith(page, {
        contentType: "text/html; charset=utf-8",
        cacheControl: asksAgain,
        headers: pageHeaders,
      }),
    )
    yield* router.add(
      "GET",
      playgroundFiles,
      Effect.flatMap(HttpServerRequest.HttpServerRequest, ({ url }) => {
        const path = pathOf(url)
        const file = files.get(path)
        const contentType = contentTypes[extname(path)] ?? ""
        return file === undefined
          ? Effect.succeed(problemResponse({ status: 404, detail: "Not Found" }))
          : answerWith(file, { contentType, cacheControl: asksAgain })
      }),
    )
  }),
)
