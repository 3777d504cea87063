// What one request took and cost: times of the node and of this page, and the price from the node's ledger.

/**
 * @typedef {object} Receipt
 * @property {number | undefined} queueMs from sending the request to the model until the model accepted it; the node's time
 * @property {number | undefined} firstMs from sending until the first token, audio or text; this page's time
 * @property {number} totalMs from sending until the end; this page's time
 * @property {number | undefined} microDollars price; undefined while it is not known
 * @property {string} firstUnit what came first: token, audio, caption
 * @property {string} [note] for example how many tokens
 */

/**
 * The steps of a `Server-Timing` header, in milliseconds.
 * @param {string | null} header
 * @returns {Record<string, number>}
 */
export const serverTiming = (header) => {
  /** @type {Record<string, number>} */
  const steps = {}
  for (const part of (header ?? "").split(",")) {
    const [name = "", ...parameters] = part.split(";").map((text) => text.trim())
    const duration = parameters.find((text) => text.startsWith("dur="))
    if (name !== "" && duration !== undefined) steps[name] = Number(duration.slice("dur=".length))
  }
  return steps
}

/** Measures one request from its construction on. */
export class Stopwatch {
  #began = performance.now()
  /** @type {number | undefined} */
  #first
  /** @type {number | undefined} */
  #queue
  /** @type {string | undefined} */
  receiptId

  /** @param {{ readonly headers: Headers }} response */
  answered({ headers }) {
    this.#queue = serverTiming(headers.get("server-timing")).queue
    this.receiptId = headers.get("x-receipt-id") ?? undefined
  }

  /** The first unit came; later calls do nothing. */
  first() {
    this.#first ??= performance.now() - this.#began
  }

  /** Milliseconds since the request was sent. */
  get elapsedMs() {
    return performance.now() - this.#began
  }

  /**
   * @param {string} firstUnit
   * @param {string} [note]
   * @returns {Receipt}
   */
  receipt(firstUnit, note) {
    return {
      queueMs: this.#queue,
      firstMs: this.#first,
      totalMs: this.elapsedMs,
      microDollars: undefined,
      firstUnit,
      ...(note === undefined ? {} : { note }),
    }
  }
}

/** A receipt is written a moment after the last byte of its answer. */
const priceTries = [50, 200, 800]

/** @typedef {import("./NodeInfo.js").UsageInfo["receipts"][number]} LedgerReceipt */

/**
 * Which receipts of the ledger belong to an answer: the id that the answer named, or, for live sessions (a browser does not
 * see the head of a WebSocket's answer), how many there are and what is known of them.
 * @typedef {string | { count: number, matches: (receipt: LedgerReceipt) => boolean }} WhichReceipt
 */

/**
 * The price of an answer; undefined where the node has no receipt for it, or does not answer.
 * @param {import("./Client.js").Client} client
 * @param {WhichReceipt} which
 * @returns {Promise<number | undefined>} micro-dollars
 */
export const priceOf = async (client, which) => {
  const query = typeof which === "string" ? `?receipt_id=${encodeURIComponent(which)}` : ""
  for (const waitMs of priceTries) {
    await new Promise((resolve) => setTimeout(resolve, waitMs))
    const usage = await client.json(`/v1/usage${query}`).catch(() => undefined)
    /** @type {ReadonlyArray<LedgerReceipt>} */
    const receipts = usage?.receipts ?? []
    const found = typeof which === "string" ? receipts : receipts.filter(which.matches)
    if (found.length === (typeof which === "string" ? 1 : which.count))
      return found.reduce((sum, { micro_dollars }) => sum + micro_dollars, 0)
  }
  return undefined
}

/**
 * Micro-dollars as dollars, without trailing zeros.
 * @param {number} microDollars
 */
export const dollars = (microDollars) =>
  `${(microDollars / 1e6).toFixed(6).replace(/(\.\d\d\d*?)0+$/, "$1")} USD`

/**
 * @param {number | undefined} ms
 * @returns {string}
 */
export const duration = (ms) => {
  if (ms === undefined) return "–"
  return ms < 1000 ? `${Math.round(ms)} ms` : `${(ms / 1000).toFixed(ms < 10_000 ? 2 : 1)} s`
}
