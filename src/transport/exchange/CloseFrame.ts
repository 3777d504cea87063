// What a close frame of a WebSocket may hold.

/** RFC 6455 7.4: codes allowed in a close frame. */
export const sendableCode = (code: number): number =>
  (code >= 1000 && code <= 1014 && code !== 1004 && code !== 1005 && code !== 1006) ||
  (code >= 3000 && code <= 4999)
    ? code
    : 1011

/** A control frame carries 125 bytes; the code takes two of them. */
export const shortReason = (reason: string): string => {
  let short = reason.slice(0, 123)
  while (Buffer.byteLength(short) > 123) short = short.slice(0, -1)
  return short
}
