// What can go wrong with one request, as the results count it.

/** Key of a failure in results: an HTTP status, or one of these. */
export type FailureKey =
  | `${number}`
  /** No connection. */
  | "unreachable"
  /** The connection ended before the reply did. */
  | "closed early"
  /** No end within --timeout. */
  | "timeout"
  /** Still running when the run ended. */
  | "unfinished"
  /** The reply is not what the endpoint promises. */
  | "wrong reply"
  /** More bytes, or a longer event, than any reply has. */
  | "too large"
  /** An error inside a stream that began with 200. */
  | "error event"

export class RequestFailed extends Error {
  readonly key: FailureKey

  /** @param detail one line */
  constructor(key: FailureKey, detail: string) {
    super(detail)
    this.key = key
  }
}

/** Whether the request failed only because its signal ended it. */
export const isUnfinished = (error: unknown): boolean =>
  error instanceof RequestFailed && error.key === "unfinished"

const longestDetail = 200

/** The text on one line without control characters, cut. It comes from the server, and terminals print it. */
export const oneLine = (text: string): string => {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is removed
  const line = text.replaceAll(/[\u0000-\u001f\u007f-\u009f]+/g, " ").trim()
  return line.length <= longestDetail ? line : `${line.slice(0, longestDetail)}…`
}

const messageIn = (value: unknown): string | undefined => {
  if (typeof value === "string") return value
  if (typeof value !== "object" || value === null) return undefined
  const { detail, error, message } = value as Readonly<Record<string, unknown>>
  return messageIn(error) ?? messageIn(message) ?? messageIn(detail)
}

/** The message of an error body in any of the usual forms: `{"error": {"message"}}`, `{"detail"}`, `{"message"}`, text. */
export const detailOf = (body: string): string => {
  try {
    return oneLine(messageIn(JSON.parse(body)) ?? body)
  } catch {
    return oneLine(body)
  }
}
