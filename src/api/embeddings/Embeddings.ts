// POST /v1/embeddings: request, reply, handler. The engine writes the vectors, so that this event loop only copies them.
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import {
  type EmbeddingBody,
  EmbeddingBody as EmbeddingBodySchema,
  inputsOf,
} from "#domain/wire/Embeddings.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import type { EmbedRequest } from "#engines/protocol/Embedding.ts"
import { joined } from "#http/JoinedBytes.ts"
import { Caller } from "#services/Caller.ts"
import { type Embedded, embed } from "#services/Embedding.ts"
import { findModel } from "#services/ModelLookup.ts"
import { readJson } from "../http/JsonBody.ts"

const readRequest = readJson(EmbeddingBodySchema)

const requestOf = (body: EmbeddingBody): Effect.Effect<EmbedRequest, InvalidRequest> => {
  const inputs = inputsOf(body.input)
  if (inputs instanceof InvalidRequest) return Effect.fail(inputs)
  const { dimensions, encoding_format } = body
  return Effect.succeed({
    inputs,
    format: encoding_format ?? "float",
    ...(typeof dimensions === "number" ? { dimensions } : {}),
  })
}

const bytes = (text: string): Uint8Array => Buffer.from(text)

/** The parts of the reply's JSON text. */
const partsOf = (model: string, { promptTokens, vectors }: Embedded): ReadonlyArray<Uint8Array> => {
  const usage = { prompt_tokens: promptTokens, total_tokens: promptTokens }
  const parts = vectors.flatMap((vector, index) => [
    bytes(`${index === 0 ? "" : "},"}{"object":"embedding","index":${index},"embedding":`),
    vector,
  ])
  const tail = `}],"model":${JSON.stringify(model)},"usage":${JSON.stringify(usage)}}`
  return [bytes('{"object":"list","data":['), ...parts, bytes(tail)]
}

export const embeddings = Effect.fnUntraced(function* (httpRequest: HttpServerRequest.HttpServerRequest) {
  const body = yield* readRequest(httpRequest)
  const request = yield* requestOf(body)
  const model = yield* findModel(body.model, "embedding")
  const embedded = yield* embed(yield* Caller, model, request)
  const reply = yield* joined(partsOf(model.entry.id, embedded))
  return HttpServerResponse.uint8Array(reply, { contentType: "application/json" })
})
