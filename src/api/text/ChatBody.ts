// Reads the body of a chat, which may be larger than other bodies where the node has a model that takes pictures.
import { Context, Effect, type Schema, type Scope } from "effect"
import type { HttpServerRequest } from "effect/http"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { maxJsonBytes } from "#domain/json/JsonLimits.ts"
import { seesPictures } from "#domain/models/ModelEntry.ts"
import { MemoryBudget } from "#domain/queues/MemoryBudget.ts"
import { type BodyTooLarge, type InvalidRequest, MemoryPressure } from "#domain/wire/Errors.ts"
import { Caller } from "#services/Caller.ts"
import { type ReadBody, readWithPictures } from "../http/JsonBody.ts"

/** Most bytes of the body of a chat with a model that takes pictures (protocol 17.1). */
export const maxChatBytes = 32_000_000

/** Bytes of bodies over 8 MB that are in memory at once, on the node and of one user (protocol 17.1). Guesses. */
export const largeBodyBytes = { node: 256_000_000, user: 64_000_000 } as const

/** Retry-After where these are used up. A guess: most such requests have had their pictures decoded by then. */
const retryAfterMs = 2_000

/** One for the process, whose memory it is. */
const CurrentLargeBodies = Context.Reference<MemoryBudget>("edgewise/api/LargeBodies", {
  defaultValue: () => new MemoryBudget(largeBodyBytes),
})

type Request = HttpServerRequest.HttpServerRequest

/** What the request announces; undefined for a chunked body. */
const announcedBytes = ({ headers }: Request): number | undefined => {
  const length = Number(headers["content-length"])
  return Number.isSafeInteger(length) ? length : undefined
}

/**
 * Most bytes of a chat's body on this node, before its model is known. A body that does not announce its size has the limit
 * of every other body: memory is reserved before it arrives, and each would reserve as much as the largest chat.
 */
export const chatLimitBytes = (request: Request): Effect.Effect<number, never, ModelRegistry> =>
  Effect.map(ModelRegistry, (registry) =>
    announcedBytes(request) !== undefined &&
    registry.all().some(({ entry, host }) => seesPictures(entry, host?.facts))
      ? maxChatBytes
      : maxJsonBytes,
  )

/** Takes the memory of a large body, before it is read, until the scope closes. */
export const admitLargeBody = (
  request: Request,
): Effect.Effect<void, MemoryPressure, Caller | ModelRegistry | Scope.Scope> =>
  Effect.flatMap(chatLimitBytes(request), (limitBytes) => {
    const bytes = announcedBytes(request) ?? 0
    // Larger than the limit: it is refused before it is read.
    if (bytes <= maxJsonBytes || bytes > limitBytes) return Effect.void
    return Effect.gen(function* () {
      const { userId } = yield* Caller
      const bodies = yield* CurrentLargeBodies
      if (!bodies.take(userId, bytes)) return yield* new MemoryPressure({ retryAfterMs })
      yield* Effect.addFinalizer(() => Effect.sync(() => bodies.keep(userId, -bytes)))
    })
  })

/** Reads bodies of a schema. */
export const readChat = <A>(schema: Schema.Codec<A, unknown>) => {
  const read = readWithPictures(schema)
  return (request: Request): Effect.Effect<ReadBody<A>, BodyTooLarge | InvalidRequest, ModelRegistry> =>
    Effect.flatMap(chatLimitBytes(request), (limitBytes) => read(request, limitBytes))
}
