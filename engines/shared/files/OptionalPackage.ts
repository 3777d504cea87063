// npm packages that an operator may leave out, because of their licence or size.
import * as Effect from "effect/Effect"
import { type EngineError, loadFailed } from "../../protocol/Engine.ts"

const isNotFound = (cause: unknown): boolean =>
  cause instanceof Error && "code" in cause && cause.code === "ERR_MODULE_NOT_FOUND"

export const notInstalled = (name: string): EngineError =>
  loadFailed("", `the npm package ${name} is not installed`)

/** What `load` imports and makes; undefined where the package is not installed. Any other failure fails the model's load. */
export const ifInstalled = <A>(
  name: string,
  load: () => Promise<A>,
): Effect.Effect<A | undefined, EngineError> =>
  Effect.tryPromise({ try: load, catch: (cause) => cause }).pipe(
    Effect.catch((cause) =>
      isNotFound(cause)
        ? Effect.succeed(undefined)
        : Effect.fail(loadFailed("", `${name}: ${String(cause)}`)),
    ),
  )
