// GET /: the playground, one static page without a build step; it talks to this node like any other client.
import { readFileSync } from "node:fs"
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"

const page = readFileSync(new URL("../web/playground.html", import.meta.url), "utf8")

const headers = {
  // The page loads nothing from anywhere and talks to its own origin alone.
  "content-security-policy":
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'; media-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
}

export const playground = Effect.succeed(
  HttpServerResponse.html(page).pipe(HttpServerResponse.setHeaders(headers)),
)
