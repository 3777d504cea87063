// Which HTTP library serves, and what is said where uWebSockets.js cannot.
import { Effect } from "effect"
import { expect, it } from "vitest"
import { chosenTransport, transportLine } from "#transport/server/TransportChoice.ts"

const works = Effect.succeed(undefined)
const missing = Effect.succeed("uWebSockets.js has no checked binary for linux_x64_137")

const chosen = (choice: "auto" | "uws" | "node", problem: typeof works | typeof missing) =>
  Effect.runSync(
    Effect.match(chosenTransport(choice, problem), {
      onFailure: ({ cause }) => (cause as Error).message,
      onSuccess: (name) => name,
    }),
  )

it("is uWebSockets.js where it loads, unless the setting says otherwise", () => {
  expect([chosen("auto", works), chosen("uws", works), chosen("node", works)]).toEqual(["uws", "uws", "node"])
})

it("is Node's own server where uWebSockets.js does not load, and one line if the setting wants it", () => {
  expect([chosen("auto", missing), chosen("node", missing)]).toEqual(["node", "node"])
  expect(chosen("uws", missing)).toBe(
    "EDGEWISE_TRANSPORT is uws, but uWebSockets.js has no checked binary for linux_x64_137; set it to node or auto",
  )
})

it("is said at the start, with the reason where `auto` could not take the first", () => {
  const line = (choice: "auto" | "node", serves: "uws" | "node") =>
    Effect.runSync(transportLine(choice, serves, missing))
  expect(line("auto", "uws")).toBe("HTTP and WebSockets by uWebSockets.js")
  expect(line("node", "node")).toBe("HTTP and WebSockets by Node's own server and ws")
  expect(line("auto", "node")).toBe(
    "HTTP and WebSockets by Node's own server and ws: uWebSockets.js has no checked binary for linux_x64_137",
  )
})
