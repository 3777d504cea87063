// What a response head may say, and the body of an answer that nobody gave one. Used by ReplyWriter, Refusal and
// UwsRequest.
import { STATUS_CODES } from "node:http"

/** "404 Not Found". */
export const statusLine = (status: number): string => `${status} ${STATUS_CODES[status] ?? "Unknown"}`

export const jsonContentType = "application/json"

/** The product's error body. */
export const detailBody = (detail: string): string => JSON.stringify({ detail })

/** For an error status without a body: the status's own name. */
export const defaultDetail = (status: number): string => detailBody(STATUS_CODES[status] ?? "Error")

const FORBIDDEN_IN_HEADER = /[\r\n\0]/

/** uWS checks nothing: a line break in a value would end the head, or begin a header of the client's choice. */
export const areSendable = (headers: Readonly<Record<string, string>>): boolean => {
  for (const name in headers) {
    if (FORBIDDEN_IN_HEADER.test(headers[name] as string) || FORBIDDEN_IN_HEADER.test(name)) return false
  }
  return true
}
