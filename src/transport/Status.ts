// Status lines, and the body of an answer that nobody gave one. Used by ReplyWriter and Refusal.
import { STATUS_CODES } from "node:http"

/** "404 Not Found". */
export const statusLine = (status: number): string => `${status} ${STATUS_CODES[status] ?? "Unknown"}`

export const jsonContentType = "application/json"

/** The product's error body. */
export const detailBody = (detail: string): string => JSON.stringify({ detail })

/** For an error status without a body: the status's own name. */
export const defaultDetail = (status: number): string => detailBody(STATUS_CODES[status] ?? "Error")
