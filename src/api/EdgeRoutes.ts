// The edge role's handlers behind their routes, with those that OpenAPI does not describe: pages, sockets and the answer
// to everything else.
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, type HttpServerResponse } from "effect/http"
import { isHttpServerError } from "effect/http/HttpServerError"
import { HttpApiBuilder } from "effect/http-api"
import { type EdgeError, errorResponse } from "#http/ErrorBody.ts"
import { idOfModelPath, type KnownPaths, modelPath, pathOf, unmatched } from "#http/NotFound.ts"
import { AuthenticationLive, makeAuthenticate } from "./access/Authentication.ts"
import { digestOfBytes, idempotent } from "./access/Idempotency.ts"
import { bodyBytes } from "./http/JsonBody.ts"
import { storeOutage } from "./http/StoreOutage.ts"
import { liveTranscription } from "./live/LiveTranscription.ts"
import { realtimeTranscription } from "./live/RealtimeTranscription.ts"
import { metrics } from "./metrics/Metrics.ts"
import { health } from "./operations/Health.ts"
import { modelLogs } from "./operations/ModelLogs.ts"
import { listModels, modelStatus, oneModel } from "./operations/Models.ts"
import { nodeTree } from "./operations/NodeTree.ts"
import {
  gpuMemory,
  gpuPurge,
  gpuStatus,
  loadModel,
  reloadCatalog,
  unloadAll,
  unloadModel,
} from "./operations/Operations.ts"
import { pullModelOnNode } from "./operations/PullRequest.ts"
import { Docs } from "./reference/Docs.ts"
import { BuiltApi, TextGroup } from "./reference/EdgeApi.ts"
import { Playground } from "./reference/Playground.ts"
import { speech, voices } from "./speech/Speech.ts"
import { chatCompletions } from "./text/ChatCompletions.ts"
import { completions } from "./text/Completions.ts"
import { completionsSocket } from "./text/CompletionsSocket.ts"
import { cancelTranscription, pollTranscription, transcribe } from "./transcription/Transcriptions.ts"

/** Every expected failure of a handler becomes its reply here, once for all endpoints. */
const answered = <R>(
  handler: Effect.Effect<HttpServerResponse.HttpServerResponse, EdgeError, R>,
): Effect.Effect<HttpServerResponse.HttpServerResponse, never, R> => Effect.catch(handler, errorResponse)

type Handler<R> = (
  self: HttpServerRequest.HttpServerRequest,
) => Effect.Effect<HttpServerResponse.HttpServerResponse, EdgeError, R>

/** A priced request with a JSON body: with an Idempotency-Key it is answered once. */
const answeredOnce = <R>(
  self: HttpServerRequest.HttpServerRequest,
  handler: Effect.Effect<HttpServerResponse.HttpServerResponse, EdgeError, R>,
) => {
  const digest = Effect.flatMap(bodyBytes(self), (bytes) => digestOfBytes(self, bytes))
  return answered(idempotent(self, digest, handler))
}

const Speech = HttpApiBuilder.group(BuiltApi, "Speech", (handlers) =>
  handlers
    .handleRaw("speech", ({ request }) => answeredOnce(request, speech(request)))
    .handleRaw("voices", ({ request }) => answered(voices(request))),
)

const Transcription = HttpApiBuilder.group(BuiltApi, "Transcription", (handlers) =>
  handlers
    .handleRaw("transcribe", ({ request }) => answered(transcribe(request)))
    .handleRaw("pollTranscription", ({ request }) => answered(pollTranscription(request)))
    .handleRaw("cancelTranscription", ({ request }) => answered(cancelTranscription(request))),
)

/** The router also takes paths in which no id can stand, e.g. with nothing behind the slash. */
const modelOf = (self: HttpServerRequest.HttpServerRequest) =>
  idOfModelPath(pathOf(self.url)) === undefined
    ? Effect.succeed(unmatched(knownPaths, self.method, self.url))
    : answered(oneModel(self))

const Models = HttpApiBuilder.group(BuiltApi, "Models", (handlers) =>
  handlers
    .handleRaw("listModels", () => listModels)
    .handleRaw("oneModel", ({ request }) => modelOf(request))
    .handleRaw("oneModelOfOwner", ({ request }) => modelOf(request))
    .handleRaw("modelStatus", () => modelStatus),
)

const Operations = HttpApiBuilder.group(BuiltApi, "Operations", (handlers) =>
  handlers
    .handleRaw("loadModel", ({ request }) => answered(loadModel(request)))
    .handleRaw("unloadModel", ({ request }) => answered(unloadModel(request)))
    .handleRaw("modelLogs", ({ request }) => answered(modelLogs(request)))
    .handleRaw("unloadAll", ({ request }) => answered(unloadAll(request)))
    .handleRaw("pullModel", ({ request }) => answered(pullModelOnNode(request)))
    .handleRaw("reloadCatalog", ({ request }) => answered(reloadCatalog(request)))
    .handleRaw("gpuStatus", ({ request }) => answered(gpuStatus(request)))
    .handleRaw("gpuMemory", ({ request }) => answered(gpuMemory(request)))
    .handleRaw("gpuPurge", ({ request }) => answered(gpuPurge(request)))
    .handleRaw("nodeTree", ({ request }) => answered(nodeTree(request))),
)

const System = HttpApiBuilder.group(BuiltApi, "System", (handlers) =>
  handlers.handleRaw("health", ({ request }) => health(request)),
)

const Api = HttpApiBuilder.layer(BuiltApi).pipe(
  Layer.provide([Speech, Transcription, Models, Operations, System]),
  Layer.provide(AuthenticationLive),
)

/** Paths and their methods, for 405 and preflight. */
export const knownPaths: KnownPaths = {
  "/": ["GET"],
  "/docs": ["GET"],
  "/docs/scalar.js": ["GET"],
  "/health": ["GET"],
  "/metrics": ["GET"],
  "/openapi.json": ["GET"],
  "/v1/audio/speech": ["POST"],
  "/v1/audio/transcriptions": ["GET", "POST", "DELETE"],
  "/v1/audio/transcriptions/ws": ["GET"],
  "/v1/audio/voices": ["GET"],
  "/v1/chat/completions": ["POST"],
  "/v1/completions": ["POST"],
  "/v1/completions/ws": ["GET"],
  "/v1/gpu/memory": ["GET"],
  "/v1/gpu/purge": ["POST"],
  "/v1/gpu/status": ["GET"],
  "/v1/models": ["GET"],
  [modelPath]: ["GET"],
  "/v1/models/load": ["POST"],
  "/v1/models/logs": ["GET"],
  "/v1/models/pull": ["POST"],
  "/v1/models/reload": ["POST"],
  "/v1/models/status": ["GET"],
  "/v1/models/unload": ["POST"],
  "/v1/models/unload-all": ["POST"],
  "/v1/node/tree": ["GET"],
  "/v1/realtime": ["GET"],
}

const request = HttpServerRequest.HttpServerRequest

/**
 * The text endpoints, without HttpApiBuilder: for every request it copies the map of all services of the node, which was
 * half of what a chat request allocated.
 */
const Text = HttpRouter.addAll(
  Effect.map(makeAuthenticate, (authenticate) => {
    const { chatCompletions: chat, completions: plain } = TextGroup.endpoints
    const serve = <R>(handler: Handler<R>) =>
      authenticate(Effect.flatMap(request, (self) => answeredOnce(self, handler(self))))
    return [
      HttpRouter.route(chat.method, chat.path, serve(chatCompletions)),
      HttpRouter.route(plain.method, plain.path, serve(completions)),
    ]
  }),
)

const Pages = HttpRouter.addAll([
  HttpRouter.route("GET", "/metrics", answered(metrics)),
  HttpRouter.route(
    "GET",
    "/v1/audio/transcriptions/ws",
    Effect.flatMap(request, (self) => answered(liveTranscription(self))),
  ),
  HttpRouter.route(
    "GET",
    "/v1/realtime",
    Effect.flatMap(request, (self) => answered(realtimeTranscription(self))),
  ),
  HttpRouter.route(
    "GET",
    "/v1/completions/ws",
    Effect.flatMap(request, (self) => answered(completionsSocket(self))),
  ),
])

/**
 * Paths below /v1/models/ that take no GET. Without these routes a GET of them would be one of a model with that id; they
 * answer 405, as for any other path and method.
 */
const NotModels = HttpRouter.addAll(
  Object.entries(knownPaths)
    .filter(([path, methods]) => path.startsWith("/v1/models/") && !methods.includes("GET"))
    .map(([path]) =>
      HttpRouter.route(
        "GET",
        path as `/${string}`,
        Effect.map(request, (self) => unmatched(knownPaths, self.method, self.url)),
      ),
    ),
)

/** No catch-all route: one would take HEAD requests away from the GET routes that answer them. */
const Others = HttpRouter.middleware(
  (handled) =>
    Effect.catch(storeOutage(handled), (error) =>
      isHttpServerError(error) && error.reason._tag === "RouteNotFound"
        ? Effect.map(request, (self) => unmatched(knownPaths, self.method, self.url))
        : Effect.fail(error),
    ),
  { global: true },
)

/** Everything the edge listener serves. */
export const EdgeRoutes = Layer.mergeAll(Api, Text, Docs, Playground, Pages, NotModels, Others)
