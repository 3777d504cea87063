// What stands in every answer's head, whoever makes it (ReplyWriter, Refusal, Handshake): the listener's own headers, and
// those that tell of the request: its id, how long its steps took, the rate that is left, the receipt. Decides no value.
import type { Exchange } from "./Exchange.ts"

/** Whole seconds, rounded up: when it says "in 1", it is not sooner. */
const seconds = (ms: number): string => String(Math.ceil(ms / 1000))

/** The listener's own headers, where the answer has no other value for one of them. Inside a cork, after the status. */
export const writeOwn = ({ listener, res }: Exchange, headers: Readonly<Record<string, string>>): void => {
  const { joinedHeaders, responseHeaders } = listener
  if (joinedHeaders === undefined) return
  for (const [name] of responseHeaders) {
    if (headers[name] === undefined) continue
    for (const [each, value] of responseHeaders) if (headers[each] === undefined) res.writeHeader(each, value)
    return
  }
  res.writeHeader(joinedHeaders[0], joinedHeaders[1])
}

/** All of them as one, because a call costs more than its text: the others are lines of the first one's value. */
export const joinHeaders = (
  headers: ReadonlyArray<readonly [string, string]>,
): readonly [string, string] | undefined => {
  const [first, ...others] = headers
  if (first === undefined) return undefined
  return [first[0], [first[1], ...others.map(([name, value]) => `${name}: ${value}`)].join("\r\n")]
}

/** Inside a cork, after the status. */
export const writeNotes = (exchange: Exchange, status: number): void => {
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
