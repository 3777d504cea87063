// The API reference of this node: GET /openapi.json, the document; GET /docs, a small page that shows it; and GET
// /docs/scalar.js, the script that draws it. Nothing is made before the first request for it.
//
// Effect's own page contains the script of 3 MB, in every answer and uncompressed.
import { createHash } from "node:crypto"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { OpenApi } from "effect/http-api"
import { EdgeApi } from "../declared/EdgeApi.ts"
import { PagesGroup } from "../declared/PagesApi.ts"
import { asksAgain, assetResponse, neverAsksAgain, onceAsked, packed } from "../http/Asset.ts"
import { scalarScript } from "./ScalarScript.ts"

const request = HttpServerRequest.HttpServerRequest
const pages = PagesGroup.endpoints

/** Scalar's settings: no telemetry, and no link to open the document on its maker's site. */
const settings = {
  _integration: "html",
  url: "openapi.json",
  withDefaultFonts: false,
  telemetry: false,
  showDeveloperTools: "never",
  hideClientButton: true,
}

const start = `Scalar.createApiReference("#reference", ${JSON.stringify(settings)})`

/** Addresses are relative, so that they work behind a proxy that serves the node under a prefix. */
const pageOf = (hash: string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>edgewise</title>
<body>
<div id="reference"></div>
<noscript>The API reference needs JavaScript. <a href="openapi.json">Its source</a> does not.</noscript>
<script src="docs/scalar.js?v=${hash}"></script>
<script>${start}</script>
</body>
</html>
`

const pageHeaders = {
  // The page loads its script, connects to its own origin only, and starts with one line that is allowed by its hash.
  "content-security-policy": [
    "default-src 'none'",
    `script-src 'self' 'sha256-${createHash("sha256").update(start).digest("base64")}'`,
    "style-src 'unsafe-inline'",
    "img-src data:",
    // Plays the speech of a request that was tried out.
    "media-src blob:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; "),
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
}

export const Docs = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const script = yield* onceAsked(scalarScript)
    const page = yield* onceAsked(Effect.flatMap(script, ({ hash }) => packed(pageOf(hash))))
    // Written before the node listens: it takes 30 ms, for which a request would hold up all others. Packed when it is asked for.
    const written = JSON.stringify(OpenApi.fromApi(EdgeApi))
    const document = yield* onceAsked(packed(written))
    yield* router.add(
      "GET",
      pages.docs.path,
      Effect.zipWith(request, page, (self, asset) =>
        assetResponse(self, asset, {
          contentType: "text/html; charset=utf-8",
          cacheControl: asksAgain,
          headers: pageHeaders,
        }),
      ),
    )
    yield* router.add(
      "GET",
      pages.docsScript.path,
      Effect.zipWith(request, script, (self, asset) =>
        assetResponse(self, asset, {
          contentType: "text/javascript; charset=utf-8",
          // Another hash is from an old page or invented: this is not the text that it names.
          cacheControl: self.url.endsWith(`?v=${asset.hash}`) ? neverAsksAgain : asksAgain,
        }),
      ),
    )
    yield* router.add(
      "GET",
      pages.openapi.path,
      Effect.zipWith(request, document, (self, asset) =>
        assetResponse(self, asset, { contentType: "application/json", cacheControl: asksAgain }),
      ),
    )
  }),
)
