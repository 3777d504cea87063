// The edge role's handlers behind their routes, with the two routes that OpenAPI cannot describe: the completions
// socket and the answer to everything else.
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { HttpApiBuilder, HttpApiScalar } from "effect/http-api"
import { AuthenticationLive } from "./Authentication.ts"
import { chatCompletions } from "./ChatCompletions.ts"
import { completions } from "./Completions.ts"
import { completionsSocket } from "./CompletionsSocket.ts"
import { EdgeApi } from "./EdgeApi.ts"
import { type EdgeError, errorResponse } from "./ErrorBody.ts"
import { health } from "./Health.ts"
import { metrics } from "./Metrics.ts"
import { listModels, modelStatus } from "./Models.ts"
import { playground } from "./Playground.ts"
import { speech, voices } from "./Speech.ts"
import { type KnownPaths, unmatched } from "./Unmatched.ts"

/** Every expected failure of a handler becomes its reply here, once for all endpoints. */
const answered = <R>(
  handler: Effect.Effect<HttpServerResponse.HttpServerResponse, EdgeError, R>,
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R> =>
  Effect.catch(handler, (error) => Effect.succeed(errorResponse(error)))

const Text = HttpApiBuilder.group(EdgeApi, "Text", (handlers) =>
  handlers
    .handleRaw("chatCompletions", ({ request }) => answered(chatCompletions(request)))
    .handleRaw("completions", ({ request }) => answered(completions(request))),
)

const Speech = HttpApiBuilder.group(EdgeApi, "Speech", (handlers) =>
  handlers
    .handleRaw("speech", ({ request }) => answered(speech(request)))
    .handleRaw("voices", ({ request }) => answered(voices(request))),
)

const Models = HttpApiBuilder.group(EdgeApi, "Models", (handlers) =>
  handlers.handleRaw("listModels", () => listModels).handleRaw("modelStatus", () => modelStatus),
)

const System = HttpApiBuilder.group(EdgeApi, "System", (handlers) =>
  handlers.handleRaw("health", () => health),
)

const Api = HttpApiBuilder.layer(EdgeApi, { openapiPath: "/openapi.json" }).pipe(
  Layer.provide([Text, Speech, Models, System]),
  Layer.provide(AuthenticationLive),
)

const Docs = HttpApiScalar.layer(EdgeApi, { path: "/docs", scalar: { withDefaultFonts: false } })

/** Paths and their methods, for 405 and preflight. */
const knownPaths: KnownPaths = {
  "/": ["GET"],
  "/docs": ["GET"],
  "/health": ["GET"],
  "/metrics": ["GET"],
  "/openapi.json": ["GET"],
  "/v1/audio/speech": ["POST"],
  "/v1/audio/voices": ["GET"],
  "/v1/chat/completions": ["POST"],
  "/v1/completions": ["POST"],
  "/v1/completions/ws": ["GET"],
  "/v1/models": ["GET"],
  "/v1/models/status": ["GET"],
}

const request = HttpServerRequest.HttpServerRequest

const Pages = HttpRouter.addAll([
  HttpRouter.route("GET", "/", playground),
  HttpRouter.route("GET", "/metrics", metrics),
  HttpRouter.route(
    "GET",
    "/v1/completions/ws",
    Effect.flatMap(request, (self) => answered(completionsSocket(self))),
  ),
  HttpRouter.route(
    "*",
    "/*",
    Effect.map(request, (self) => unmatched(knownPaths, self.method, self.url)),
  ),
])

/** Everything the edge listener serves. */
export const EdgeRoutes = Layer.mergeAll(Api, Docs, Pages)
