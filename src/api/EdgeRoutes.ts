// The edge role's handlers behind the endpoints that EdgeApi declares.
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServerRequest, type HttpServerResponse } from "effect/http"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import type { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { BodyTooLarge, InvalidRequest } from "#domain/wire/Errors.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { errorResponse } from "#http/ErrorBody.ts"
import { idOfModelPath, pathOf, unmatched } from "#http/NotFound.ts"
import { AuthenticationLive, makeAuthenticate } from "./access/Authentication.ts"
import { digestOfBytes, idempotent } from "./access/Idempotency.ts"
import { createCall } from "./calls/CreateCall.ts"
import { hangUp } from "./calls/HangUp.ts"
import { isSideband, sideband } from "./calls/Sideband.ts"
import { createClientSecret } from "./conversation/door/ClientSecret.ts"
import { realtime } from "./conversation/door/RealtimeConversation.ts"
import { BuiltApi, EdgeApi } from "./declared/EdgeApi.ts"
import { knownPathsOf } from "./declared/KnownPaths.ts"
import { PagesGroup } from "./declared/PagesApi.ts"
import { QueryCheckLive } from "./declared/QueryErrors.ts"
import { SocketsGroup } from "./declared/SocketsApi.ts"
import { TextGroup } from "./declared/TextApi.ts"
import { embeddings } from "./embeddings/Embeddings.ts"
import { bodyBytes, withoutBody } from "./http/JsonBody.ts"
import { otherPaths } from "./http/OtherPaths.ts"
import { liveTranscription } from "./live/LiveTranscription.ts"
import { metrics } from "./metrics/Metrics.ts"
import { deleteAnswers, deleteJob, deleteOrg, deleteUser } from "./operations/Deletion.ts"
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
import { usage } from "./operations/Usage.ts"
import { Docs } from "./reference/Docs.ts"
import { Playground } from "./reference/Playground.ts"
import { responses } from "./responses/Responses.ts"
import { speech, voices } from "./speech/Speech.ts"
import { twilioSocket } from "./telephony/TwilioSocket.ts"
import { admitLargeBody, chatLimitBytes } from "./text/ChatBody.ts"
import { chatCompletions } from "./text/ChatCompletions.ts"
import { completions } from "./text/Completions.ts"
import { completionsSocket } from "./text/CompletionsSocket.ts"
import {
  cancelTranscription,
  pollTranscription,
  transcribe,
  translate,
} from "./transcription/Transcriptions.ts"

/** Paths and their methods, for 405, preflights and metrics. */
export const knownPaths = knownPathsOf(EdgeApi)

type Request = HttpServerRequest.HttpServerRequest
type Response = HttpServerResponse.HttpServerResponse

/** Answers expected failures. */
const caught = <A, E extends EdgeError, R>(
  handler: Effect.Effect<A, E, R>,
): Effect.Effect<A | Response, never, R> => Effect.catch(handler, errorResponse)

/**
 * The same with the errors still in the type, where they cannot occur any more: HttpApiBuilder's handlers compile only
 * where their endpoint declares every error that the handler may fail with.
 */
const answered = <A, E extends EdgeError, R>(
  handler: Effect.Effect<A, E, R>,
): Effect.Effect<A | Response, E, R> => caught(handler)

type Handler<E, R> = (self: Request) => Effect.Effect<Response, E, R>

/** A priced request with a JSON body: with an Idempotency-Key it is answered once. */
const once = <E extends EdgeError, R>(
  self: Request,
  handler: Effect.Effect<Response, E, R>,
  bytes: Effect.Effect<Uint8Array, BodyTooLarge | InvalidRequest, ModelRegistry> = bodyBytes(self),
) =>
  idempotent(
    self,
    Effect.flatMap(bytes, (read) => digestOfBytes(self, read)),
    handler,
  )

/** The same for a chat, whose body may be larger. */
const chatOnce = <E extends EdgeError, R>(self: Request, handler: Effect.Effect<Response, E, R>) =>
  Effect.andThen(
    admitLargeBody(self),
    once(
      self,
      handler,
      Effect.flatMap(chatLimitBytes(self), (limitBytes) => bodyBytes(self, limitBytes)),
    ),
  )

const Speech = HttpApiBuilder.group(BuiltApi, "Speech", (handlers) =>
  handlers
    // Raw: the reply is audio, and the body is read under a cap of its own.
    .handleRaw("speech", ({ request }) => answered(once(request, speech(request))))
    .handle("voices", ({ query }) => answered(voices(query))),
)

const Transcription = HttpApiBuilder.group(BuiltApi, "Transcription", (handlers) =>
  handlers
    // Raw: the upload goes to disk as it arrives, and replies have one of five formats.
    .handleRaw("transcribe", ({ request }) => answered(transcribe(request)))
    .handleRaw("translate", ({ request }) => answered(translate(request)))
    .handle("pollTranscription", ({ query }) => answered(pollTranscription(query)))
    .handle("cancelTranscription", ({ query, request }) =>
      answered(withoutBody(request)(cancelTranscription(query))),
    ),
)

/** The router also takes paths in which no id can stand, e.g. with nothing behind the slash. */
const modelOf = (self: Request) =>
  idOfModelPath(pathOf(self.url)) === undefined
    ? Effect.succeed(unmatched(knownPaths, self))
    : answered(oneModel(self))

const Models = HttpApiBuilder.group(BuiltApi, "Models", (handlers) =>
  handlers
    .handle("listModels", () => listModels)
    .handle("oneModel", ({ request }) => modelOf(request))
    .handle("oneModelOfOwner", ({ request }) => modelOf(request))
    .handle("modelStatus", () => modelStatus),
)

// Those with a body are raw: it is read whatever its content type says, under the limits of protocol 1.2, and only for
// operators. Their replies are encoded as declared, like those of the others.
const Operations = HttpApiBuilder.group(BuiltApi, "Operations", (handlers) =>
  handlers
    .handleRaw("loadModel", ({ request }) => answered(loadModel(request)))
    .handleRaw("unloadModel", ({ request }) => answered(unloadModel(request)))
    .handle("modelLogs", ({ query }) => answered(modelLogs(query)))
    .handle("unloadAll", ({ request }) => answered(withoutBody(request)(unloadAll())))
    .handleRaw("pullModel", ({ request }) => answered(pullModelOnNode(request)))
    .handle("reloadCatalog", ({ request }) => answered(withoutBody(request)(reloadCatalog())))
    .handle("gpuStatus", () => answered(gpuStatus()))
    .handle("gpuMemory", () => answered(gpuMemory()))
    .handleRaw("gpuPurge", ({ request }) => answered(gpuPurge(request)))
    .handle("nodeTree", () => answered(nodeTree())),
)

const Deletion = HttpApiBuilder.group(BuiltApi, "Deletion", (handlers) =>
  handlers
    .handle("deleteOrg", ({ query, request }) => answered(withoutBody(request)(deleteOrg(query))))
    .handle("deleteUser", ({ query, request }) => answered(withoutBody(request)(deleteUser(query))))
    .handle("deleteJob", ({ query, request }) => answered(withoutBody(request)(deleteJob(query))))
    .handle("deleteAnswers", ({ query, request }) => answered(withoutBody(request)(deleteAnswers(query)))),
)

// Raw: the body is read whatever its content type says, as elsewhere.
const Realtime = HttpApiBuilder.group(BuiltApi, "Realtime", (handlers) =>
  handlers.handleRaw("createClientSecret", ({ request }) => answered(createClientSecret(request))),
)

// Raw: the answer of a call is no JSON, and its body is read under limits of its own.
const Calls = HttpApiBuilder.group(BuiltApi, "Calls", (handlers) =>
  handlers.handleRaw("createCall", ({ request }) => answered(createCall(request))),
)

const HangUp = HttpApiBuilder.group(BuiltApi, "HangUp", (handlers) =>
  handlers.handleRaw("hangUpCall", ({ request }) => answered(hangUp(request))),
)

const Usage = HttpApiBuilder.group(BuiltApi, "Usage", (handlers) =>
  handlers.handle("usage", ({ query }) => usage(query)),
)

const System = HttpApiBuilder.group(BuiltApi, "System", (handlers) =>
  handlers.handle("health", ({ request }) => health(request)),
)

const Api = HttpApiBuilder.layer(BuiltApi).pipe(
  Layer.provide([
    Speech,
    Transcription,
    Models,
    Operations,
    Deletion,
    Realtime,
    Calls,
    HangUp,
    Usage,
    System,
  ]),
  Layer.provide([AuthenticationLive, QueryCheckLive]),
)

const request = HttpServerRequest.HttpServerRequest

/**
 * The text endpoints, declared in TextGroup and served without HttpApiBuilder: for every request it copies the map of all
 * services of the node, which was half of what a chat request allocated (measured).
 */
const Text = HttpRouter.addAll(
  Effect.map(makeAuthenticate, (authenticate) => {
    const {
      chatCompletions: chat,
      completions: plain,
      embeddings: vectors,
      responses: response,
    } = TextGroup.endpoints
    const serve = <E extends EdgeError, R>(handler: Handler<E, R>) =>
      authenticate(Effect.flatMap(request, (self) => caught(once(self, handler(self)))))
    const serveChat = <E extends EdgeError, R>(handler: Handler<E, R>) =>
      authenticate(Effect.flatMap(request, (self) => caught(chatOnce(self, handler(self)))))
    return [
      HttpRouter.route(chat.method, chat.path, serveChat(chatCompletions)),
      HttpRouter.route(plain.method, plain.path, serve(completions)),
      HttpRouter.route(response.method, response.path, serveChat(responses)),
      HttpRouter.route(vectors.method, vectors.path, serve(embeddings)),
    ]
  }),
)

const sockets = SocketsGroup.endpoints
const onSocket = <E extends EdgeError, R>(handler: Handler<E, R>) =>
  Effect.flatMap(request, (self) => caught(handler(self)))

/** A conversation, a transcription, or the sideband of a call. */
const realtimeSocket = (self: Request) =>
  Effect.gen(function* () {
    return isSideband(self) ? yield* sideband(self) : yield* realtime(self)
  })

/** Plain routes: HttpApiBuilder does not upgrade to WebSockets, and metrics are a text. */
const Plain = HttpRouter.addAll([
  HttpRouter.route("GET", PagesGroup.endpoints.metrics.path, caught(metrics)),
  HttpRouter.route("GET", sockets.liveTranscription.path, onSocket(liveTranscription)),
  HttpRouter.route("GET", sockets.realtime.path, onSocket(realtimeSocket)),
  HttpRouter.route("GET", sockets.twilio.path, onSocket(twilioSocket)),
  HttpRouter.route("GET", sockets.completionsSocket.path, onSocket(completionsSocket)),
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
        Effect.map(request, (self) => unmatched(knownPaths, self)),
      ),
    ),
)

/** Everything the edge listener serves. */
export const EdgeRoutes = Layer.mergeAll(
  Api,
  Text,
  Docs,
  Playground,
  Plain,
  NotModels,
  otherPaths(knownPaths),
)
