// The only door to uWebSockets.js: its types, and the way to load it. Called by UwsServer; the other files of this
// folder know the types and never import the package.
import type * as Uws from "uWebSockets.js"
import { uwsProblem } from "./UwsBinary.ts"

export type { HttpRequest, HttpResponse, TemplatedApp, WebSocket } from "uWebSockets.js"
export type Library = typeof Uws
export type ListenSocket = Parameters<Library["us_listen_socket_close"]>[0]

/** An SSLApp with what the package's types leave out: an app that accepts can hand its connections to others. */
export interface SecureApp extends Uws.TemplatedApp {
  /** Names this app in the calls below, for the life of the process. */
  readonly getDescriptor: () => number
  /** Connections that this app accepts go in turn to the apps that are added. */
  readonly addChildAppDescriptor: (descriptor: number) => void
  readonly removeChildAppDescriptor: (descriptor: number) => void
}

/**
 * Where uWS itself refuses a request head, answering 431 with a page of its own. Twice our cap, so that a head that is
 * merely too large gets our JSON answer. A connection holds this much at most, for the 10 to 12 s that uWS gives a head.
 */
const UWS_HEAD_BYTES = 64 * 1024

/** uSockets' LIBUS_LISTEN_EXCLUSIVE_PORT. Without it, a second process would share the port without a word. */
export const EXCLUSIVE_PORT = 1

let library: Promise<Library> | undefined

const load = async (): Promise<Library> => {
  const problem = await uwsProblem()
  if (problem !== undefined) throw new Error(problem)
  process.env.UWS_HTTP_MAX_HEADERS_SIZE = String(UWS_HEAD_BYTES)
  return import("uWebSockets.js")
}

/**
 * Loads uWS once, if its native code is the one that was checked. It reads the head limit from the environment when it is
 * loaded, hence the dynamic import.
 */
export const loadUws = (): Promise<Library> => {
  library ??= load()
  return library
}
