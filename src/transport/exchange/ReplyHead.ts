// Headers of every response: the listener's own, and those about the request (id, times of its steps, remaining rate,
// receipt).
import type { SharedHeaders } from "./Channel.ts"
import type { Exchange } from "./Exchange.ts"

/** Whole seconds, rounded up, so that the stated time is never too early. */
const seconds = (ms: number): string => String(Math.ceil(ms / 1000))

/** Writes the listener's own headers except those that the response sets itself. Inside a cork, after the status. */
export const writeListenerHeaders = (
  { listener, res }: Exchange,
  headers: Readonly<Record<string, string>>,
): void => {
  const { responseHeaders } = listener
  for (const [name] of responseHeaders.list) {
    if (headers[name] === undefined) continue
    for (const [each, value] of responseHeaders.list) {
      if (headers[each] === undefined) res.writeHeader(each, value)
    }
    return
  }
  res.writeShared(responseHeaders)
}

/**
 * Joins the headers into one, because a call of uWS costs more than its text: the others become lines of the first
 * one's value.
 */
export const sharedHeaders = (list: ReadonlyArray<readonly [string, string]>): SharedHeaders => {
  const [first, ...others] = list
  if (first === undefined) return { list, joined: undefined }
  const lines = [first[1], ...others.map(([name, value]) => `${name}: ${value}`)]
  return { list, joined: [first[0], lines.join("\r\n")] }
}

/** Writes the headers about the request. Inside a cork, after the status. */
export const writeRequestHeaders = (exchange: Exchange, status: number): void => {
  const { notes, res } = exchange
  exchange.status = status
  res.writeHeader("x-request-id", notes.requestId)
  res.writeHeader("server-timing", notes.serverTiming())
  const { rate } = notes
  if (rate !== undefined) {
    res.writeHeader("x-ratelimit-limit", String(rate.limit))
    res.writeHeader("x-ratelimit-remaining", String(rate.remaining))
    res.writeHeader("x-ratelimit-reset", seconds(rate.resetMs))
  }
  const receiptId = notes.receiptIdFor(status)
  if (receiptId !== undefined) res.writeHeader("x-receipt-id", receiptId)
}
