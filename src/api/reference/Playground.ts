// GET /: the playground, one static page without a build step; it talks to this node like any other client.
import { readFileSync } from "node:fs"
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { PagesGroup } from "../declared/PagesApi.ts"
import { asksAgain, assetResponse, onceAsked, packed } from "../http/Asset.ts"

const page = readFileSync(new URL("../../web/playground.html", import.meta.url), "utf8")

const headers = {
  // The page loads nothing from other origins and connects to its own origin only.
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; media-src blob:; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
}

export const Playground = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const asset = yield* onceAsked(packed(page))
    const answer = Effect.zipWith(HttpServerRequest.HttpServerRequest, asset, (self, asked) =>
      assetResponse(self, asked, {
        contentType: "text/html; charset=utf-8",
        cacheControl: asksAgain,
        headers,
      }),
    )
    yield* router.add("GET", PagesGroup.endpoints.playground.path, answer)
  }),
)
