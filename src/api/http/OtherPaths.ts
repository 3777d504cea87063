// What a listener with a router answers beside its routes: unknown paths and methods, and a store that is down.
import { Effect } from "effect"
import { HttpRouter, HttpServerRequest } from "effect/http"
import { isHttpServerError } from "effect/http/HttpServerError"
import { type KnownPaths, knownPathOf, pathOf, unmatched } from "#http/NotFound.ts"
import { storeOutage } from "./StoreOutage.ts"

/**
 * Not a catch-all route: one would take HEAD requests away from the GET routes that answer them. Paths are compared here
 * because the router takes `/v1/models;x` for `/v1/models`.
 */
export const otherPaths = (paths: KnownPaths) =>
  HttpRouter.middleware(
    (handled) => {
      const answered = storeOutage(handled)
      return Effect.flatMap(HttpServerRequest.HttpServerRequest, (self) =>
        knownPathOf(paths, pathOf(self.url)) === undefined
          ? Effect.succeed(unmatched(paths, self))
          : Effect.catch(answered, (error) =>
              isHttpServerError(error) && error.reason._tag === "RouteNotFound"
                ? Effect.succeed(unmatched(paths, self))
                : Effect.fail(error),
            ),
      )
    },
    { global: true },
  )
