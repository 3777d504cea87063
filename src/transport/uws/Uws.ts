// The types of uWebSockets.js and the only place that loads it.
import type * as Uws from "uWebSockets.js"
import { uwsProblem } from "./UwsBinary.ts"

export type { HttpRequest, HttpResponse, TemplatedApp, WebSocket } from "uWebSockets.js"
export type Library = typeof Uws
/** The third argument of the upgrade handler. */
export type UpgradeContext = Parameters<Uws.HttpResponse["upgrade"]>[4]
export type ListenSocket = Parameters<Library["us_listen_socket_close"]>[0]

/** An SSLApp with methods that the package's types lack: an accepting app can pass its connections to others. */
export interface SecureApp extends Uws.TemplatedApp {
  /** Identifies this app in the calls below, for the life of the process. */
  readonly getDescriptor: () => number
  /** Connections that this app accepts go to the added apps in rotation. */
  readonly addChildAppDescriptor: (descriptor: number) => void
  readonly removeChildAppDescriptor: (descriptor: number) => void
}

/**
 * Size at which uWS itself refuses a request head, with 431 and a page of its own. Twice our limit, so that a slightly
 * larger head gets our JSON response. A connection holds at most this much, for the 10 to 12 s that uWS grants a head.
 */
const uwsHeadBytes = 64 * 1024

/** uSockets' LIBUS_LISTEN_EXCLUSIVE_PORT. Without it, a second process would silently share the port. */
export const exclusivePort = 1

let library: Promise<Library> | undefined

const load = async (): Promise<Library> => {
  const problem = await uwsProblem()
  if (problem !== undefined) throw new Error(problem)
  process.env.UWS_HTTP_MAX_HEADERS_SIZE = String(uwsHeadBytes)
  return import("uWebSockets.js")
}

/**
 * Loads uWS once, if its native code is the checked one. uWS reads the head limit from the environment when it is
 * loaded, hence the dynamic import.
 */
export const loadUws = (): Promise<Library> => {
  library ??= load()
  return library
}
