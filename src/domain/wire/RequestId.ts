// The allowed form of `X-Request-Id`, which goes into logs and back to the client (protocol 1.5). Pure.

/** Longest id accepted from a client. A guess: twice a traceparent, four times a UUID. */
export const maxRequestIdLength = 128

/** Letters, digits and usual separators. No blank, quote or comma (two headers would read as one id). */
const plain = /^[A-Za-z0-9._~:+/=@-]+$/

export const isRequestId = (text: string): boolean => text.length <= maxRequestIdLength && plain.test(text)
