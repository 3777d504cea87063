// Which HTTP library serves: the one that the setting names, or with `auto` uWebSockets.js where its checked binary
// loads, and Node's own server elsewhere.
import { Effect } from "effect"
import { ServeError } from "effect/http/HttpServerError"
import { loadUws } from "../uws/Uws.ts"

export type TransportChoice = "auto" | "uws" | "node"
export type TransportName = "uws" | "node"

/** Why uWebSockets.js cannot serve here, in one line. Undefined if it can. */
export const uwsProblem: Effect.Effect<string | undefined> = Effect.promise(() =>
  loadUws().then(
    () => undefined,
    (cause: unknown) => (cause instanceof Error ? cause.message : String(cause)).split("\n")[0],
  ),
)

/** Fails with one line that says what to do if the choice is `uws` and its binary does not load. */
export const chosenTransport = (
  choice: TransportChoice,
  problem: Effect.Effect<string | undefined> = uwsProblem,
): Effect.Effect<TransportName, ServeError> => {
  if (choice === "node") return Effect.succeed("node")
  return Effect.flatMap(problem, (found) => {
    if (found === undefined) return Effect.succeed("uws" as const)
    if (choice === "auto") return Effect.succeed("node" as const)
    const cause = new Error(`EDGEWISE_TRANSPORT is uws, but ${found}; set it to node or auto`)
    return Effect.fail(new ServeError({ cause }))
  })
}

const names: Readonly<Record<TransportName, string>> = {
  uws: "uWebSockets.js",
  node: "Node's own server and ws",
}

/** For example "HTTP and WebSockets by uWebSockets.js", and why it is another library than `auto` takes first. */
export const transportLine = (
  choice: TransportChoice,
  serves: TransportName,
  problem: Effect.Effect<string | undefined> = uwsProblem,
): Effect.Effect<string> => {
  const line = `HTTP and WebSockets by ${names[serves]}`
  if (choice !== "auto" || serves === "uws") return Effect.succeed(line)
  return Effect.map(problem, (found) => `${line}: ${found}`)
}
