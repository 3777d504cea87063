// Status lines, checks of response headers, and the default body of error statuses.
import { STATUS_CODES } from "node:http"

/** For example "404 Not Found". */
export const statusLine = (status: number): string => `${status} ${STATUS_CODES[status] ?? "Unknown"}`

export const jsonContentType = "application/json"

/** The product's error body (protocol 3.1). */
export const detailBody = (detail: string): string => JSON.stringify({ detail })

/** The body of an error status without one: the status's name. */
export const defaultDetail = (status: number): string => detailBody(STATUS_CODES[status] ?? "Error")

const forbiddenInHeader = /[\r\n\0]/

/** uWS checks nothing: a line break in a value would end the head or insert a header. */
export const areSendable = (headers: Readonly<Record<string, string>>): boolean => {
  for (const name in headers) {
    if (forbiddenInHeader.test(headers[name] as string) || forbiddenInHeader.test(name)) return false
  }
  return true
}
