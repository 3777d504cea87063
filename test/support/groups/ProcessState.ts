// State of the whole process. Test files share workers, so that what one changes of it and does not change back is there for the next one.
// Guard.ts compares it before and after the tests of each file.

/** Environment variables that the product sets for the rest of the process, for libraries that read them when they are loaded. */
const setForGood = new Set(["ORT_DISABLE_TELEMETRY", "UWS_HTTP_MAX_HEADERS_SIZE"])

/** Events of the process to which libraries listen until it ends, among them eSpeak, as everything that Emscripten makes. */
const listenedForGood = new Set<string | symbol>([
  "beforeExit",
  "exit",
  "uncaughtException",
  "unhandledRejection",
])

/** Names and values, which are compared by identity. */
export const processState = (): ReadonlyMap<string, unknown> => {
  const state = new Map<string, unknown>([
    ["the working directory", process.cwd()],
    ["the exit status", process.exitCode],
    [
      "listening sockets",
      process.getActiveResourcesInfo().filter((resource) => resource === "TCPServerWrap").length,
    ],
  ])
  for (const [name, value] of Object.entries(process.env))
    if (!setForGood.has(name)) state.set(`the environment variable ${name}`, value)
  for (const name of Object.getOwnPropertyNames(globalThis))
    if (!name.startsWith("__vitest")) state.set(`the global ${name}`, Reflect.get(globalThis, name))
  for (const event of process.eventNames())
    if (!listenedForGood.has(event))
      state.set(`listeners for the process's ${String(event)}`, process.listenerCount(event))
  return state
}

/** Names of what is not as it was. */
export const changesSince = (before: ReadonlyMap<string, unknown>): ReadonlyArray<string> => {
  const now = processState()
  return [...new Set([...before.keys(), ...now.keys()])].filter(
    (name) => !Object.is(before.get(name), now.get(name)),
  )
}
