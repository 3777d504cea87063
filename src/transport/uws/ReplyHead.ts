// Headers of every response: the listener's own, and those about the request (id, times of its steps, remaining rate,
// receipt).
import type { Exchange } from "./Exchange.ts"

/** Whole seconds, rounded up, so that the stated time is never too early. */
const seconds = (ms: number): string => String(Math.ceil(ms / 1000))

/** Writes the listener's own headers except those that the response sets itself. Inside a cork, after the status. */
export const writeListenerHeaders = (
  { listener, res }: Exchange,
  headers: Readonly<Record<string, string>>,
): void => {
  const { joinedHeaders, responseHeaders } = listener
  if (joinedHeaders === undefined) return
  for (const [name] of responseHeaders) {
    if (headers[name] === undefined) continue
    for (const [each, value] of responseHeaders) if (headers[each] === undefined) res.writeHeader(each, value)
    return
  }
  res.writeHeader(joinedHeaders[0], joinedHeaders[1])
}

/**
 * Joins the headers into one, because a call costs more than its text: the others become lines of the first one's
 * value.
 */
export const joinHeaders = (
  headers: ReadonlyArray<readonly [string, string]>,
): readonly [string, string] | undefined => {
  const [first, ...others] = headers
  if (first === undefined) return undefined
  return [first[0], [first[1], ...others.map(([name, value]) => `${name}: ${value}`)].join("\r\n")]
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
