// What may stand in `X-Request-Id`: it goes into logs and back to the client, so it is short and plain. Pure.

/** Longest id that is taken over from a client. A guess: twice a traceparent, four times a UUID. */
export const maxRequestIdLength = 128

/** Letters, digits and what ids are joined with: no blank, no quote, no comma (two headers would read as one id). */
const plain = /^[A-Za-z0-9._~:+/=@-]+$/

export const isRequestId = (text: string): boolean => text.length <= maxRequestIdLength && plain.test(text)
