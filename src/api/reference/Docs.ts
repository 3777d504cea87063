// The API reference of this node: GET /openapi.json, the document with examples for the models of this node; GET /docs, a small page that shows it; and GET
// /docs/scalar.js, the script that draws it. Nothing is made before the first request for it.
//
// Effect's own page contains the script of 3 MB, in every answer and uncompressed.
import { createHash } from "node:crypto"
import { Effect, Scope } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import * as OpenApi from "effect/http-api/OpenApi"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { Conversations } from "#services/Conversations.ts"
import { EdgeApi } from "../declared/EdgeApi.ts"
import { PagesGroup } from "../declared/PagesApi.ts"
import { answerWith, asksAgain, assetResponse, neverAsksAgain, onceAsked, packed } from "../http/Asset.ts"
import { type ExampleModel, withExamples } from "./Examples.ts"
import { scalarScript } from "./ScalarScript.ts"

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

/** A reader who comes from the playground in the same tab has typed the key already: the tab's storage has it. */
const start =
  `let token="";try{token=JSON.parse(sessionStorage.getItem("edgewise.key")??'""')}catch{}` +
  `Scalar.createApiReference("#reference",{...${JSON.stringify(settings)},` +
  `authentication:{preferredSecurityScheme:"bearer",securitySchemes:{bearer:{token}}}})`

/**
 * Scalar begins its own parts below a head of this height, and gives it its colours. On a phone its labels for screen readers lie
 * beside the page, which would scroll sideways.
 */
const style =
  "#reference{overflow-x:clip}" +
  ":root{--scalar-custom-header-height:2.5rem}body{margin:0}" +
  "header{position:sticky;top:0;z-index:10;box-sizing:border-box;height:2.5rem;display:flex;gap:1.25rem;align-items:center;" +
  "padding:0 1rem;font:0.9rem system-ui,sans-serif;background:var(--scalar-background-1);color:var(--scalar-color-1);" +
  "border-bottom:1px solid var(--scalar-border-color)}header a{color:var(--scalar-color-1)}"

/** Addresses are relative, so that they work behind a proxy that serves the node under a prefix. */
const pageOf = (hash: string): string => `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>edgewise API reference</title>
<style>${style}</style>
<body>
<header><strong>edgewise</strong><a href="./">Playground</a><a href="openapi.json">OpenAPI document</a></header>
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

/** The models of the node at each moment, as far as examples need them. */
const exampleModels = Effect.gen(function* () {
  const registry = yield* ModelRegistry
  const conversations = yield* Conversations
  return (): ReadonlyArray<ExampleModel> => [
    ...registry.all().map(({ entry: { id, kind, speech } }) => ({ id, kind, voices: speech?.voices ?? [] })),
    ...conversations.all.map(({ id }): ExampleModel => ({ id, kind: "conversation", voices: [] })),
  ]
})

export const Docs = HttpRouter.use(
  Effect.fnUntraced(function* (router) {
    const script = yield* onceAsked(scalarScript)
    const page = yield* onceAsked(Effect.flatMap(script, ({ hash }) => packed(pageOf(hash))))
    // Made before the node listens: it takes 30 ms, for which a request would hold up all others.
    const plain = OpenApi.fromApi(EdgeApi)
    const models = yield* exampleModels
    const scope = yield* Effect.scope
    let packedFor = { key: "", asset: yield* onceAsked(packed("")) }
    /** With the examples that the models of this moment give; made again when others have come. */
    const document = Effect.gen(function* () {
      const now = models()
      const key = JSON.stringify(now)
      if (key !== packedFor.key) {
        const make = Effect.suspend(() => packed(JSON.stringify(withExamples(plain, now))))
        packedFor = { key, asset: yield* Scope.provide(onceAsked(make), scope) }
      }
      return yield* packedFor.asset
    })
    yield* router.add(
      "GET",
      pages.docs.path,
      answerWith(page, {
        contentType: "text/html; charset=utf-8",
        cacheControl: asksAgain,
        headers: pageHeaders,
      }),
    )
    yield* router.add(
      "GET",
      pages.docsScript.path,
      Effect.zipWith(HttpServerRequest.HttpServerRequest, script, (self, asset) =>
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
      answerWith(document, { contentType: "application/json", cacheControl: asksAgain }),
    )
  }),
)
