// Requests to the node that served this page. Paths are relative to the page, so that they work behind a proxy that serves
// the node under a prefix.

/** An answer of the node with a status of 400 or more. `message` is its `detail`. */
export class Refusal extends Error {
  /**
   * @param {number} status
   * @param {string} detail
   * @param {number | undefined} retryAfterSeconds
   */
  constructor(status, detail, retryAfterSeconds) {
    super(detail)
    this.name = "Refusal"
    this.status = status
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** The node could not be reached at all. */
export class NodeGone extends Error {
  constructor() {
    super("the node does not answer")
    this.name = "NodeGone"
  }
}

/**
 * @param {Response} response
 * @returns {Promise<Refusal>}
 */
const refusalOf = async (response) => {
  const body = await response.json().catch(() => undefined)
  const detail = body?.detail ?? body?.message ?? response.statusText
  const after = Number(response.headers.get("retry-after") ?? Number.NaN)
  return new Refusal(response.status, String(detail), Number.isFinite(after) ? after : undefined)
}

/**
 * A key that can be sent. A browser refuses a header with other characters, with an error like that of a node that is gone.
 * @param {string} key
 */
const sendable = (key) => {
  if (/[^\x21-\x7e]/.test(key)) throw new Refusal(401, "it has characters that no key has", undefined)
  return key
}

export class Client {
  /**
   * @param {string} base the address of the node, with a slash at its end
   * @param {() => string} key the credential at the moment of a request; empty for none
   */
  constructor(base, key) {
    this.base = base
    this.key = key
    /** Called when a request finds that the node does not answer. */
    this.onGone = () => {}
  }

  /**
   * @param {string} path from `/`
   * @returns {URL}
   */
  url(path) {
    return new URL(path.replace(/^\//, ""), this.base)
  }

  /**
   * @param {string} path
   * @param {{ method?: string, json?: unknown, body?: FormData, signal?: AbortSignal }} [options]
   * @returns {Promise<Response>} a successful answer; fails with Refusal or NodeGone
   */
  async fetch(path, { method, json, body, signal } = {}) {
    const key = sendable(this.key())
    /** @type {Record<string, string>} */
    const headers = key === "" ? {} : { Authorization: `Bearer ${key}` }
    if (json !== undefined) headers["Content-Type"] = "application/json"
    const sent = json === undefined ? body : JSON.stringify(json)
    /** @type {RequestInit} */
    const init = { method: method ?? (sent === undefined ? "GET" : "POST"), headers }
    if (sent !== undefined) init.body = sent
    if (signal !== undefined) init.signal = signal
    const response = await fetch(this.url(path), init).catch((error) => {
      if (error instanceof Error && error.name === "AbortError") throw error
      this.onGone()
      throw new NodeGone()
    })
    if (!response.ok) throw await refusalOf(response)
    return response
  }

  /**
   * @param {string} path
   * @param {Parameters<Client["fetch"]>[1]} [options]
   * @returns {Promise<any>} the JSON of a successful answer
   */
  async json(path, options) {
    return (await this.fetch(path, options)).json()
  }

  /**
   * The address of a WebSocket of the node and its subprotocols. A browser cannot set headers on a WebSocket, so the key
   * travels as a subprotocol, which unlike the address is not written into logs.
   * @param {string} path
   * @returns {{ url: string, protocols: Array<string> }}
   */
  socket(path) {
    const url = this.url(path)
    url.protocol = url.protocol === "https:" ? "wss:" : "ws:"
    return { url: url.href, protocols: [`openai-insecure-api-key.${sendable(this.key())}`] }
  }
}
