// The only door to uWebSockets.js: its types, and the way to load it. Called by UwsServer; the other files of this
// folder know the types and never import the package.
import type * as Uws from "uWebSockets.js"

export type { HttpRequest, HttpResponse, TemplatedApp, WebSocket } from "uWebSockets.js"
export type Library = typeof Uws

/**
 * Where uWS itself refuses a request head, answering 431 with a page of its own. Twice our cap, so that a head that is
 * merely too large gets our JSON answer. A connection holds this much at most, for the 10 to 12 s that uWS gives a head.
 */
const UWS_HEAD_BYTES = 64 * 1024

/** uSockets' LIBUS_LISTEN_EXCLUSIVE_PORT. Without it, a second process would share the port without a word. */
export const EXCLUSIVE_PORT = 1

let library: Promise<Library> | undefined

/** Loads uWS once. It reads the head limit from the environment when it is loaded, hence the dynamic import. */
export const loadUws = (): Promise<Library> => {
  if (library === undefined) {
    process.env.UWS_HTTP_MAX_HEADERS_SIZE = String(UWS_HEAD_BYTES)
    library = import("uWebSockets.js")
  }
  return library
}
