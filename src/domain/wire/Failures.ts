// What the error classes of Errors declare, read by the tag of an error. The only way from an error to its status, fault
// and text.
import * as Errors from "./Errors.ts"
import type { Failure } from "./errors/Failure.ts"

type ErrorClass = (typeof Errors)[keyof typeof Errors]

/** Any expected failure of a request. */
export type EdgeError = InstanceType<ErrorClass>

/** The classes by tag, which is also their name and the code on the wire. */
export const errorClasses: Readonly<Record<EdgeError["_tag"], ErrorClass>> = { ...Errors }

export const failureOf = (error: EdgeError): Failure<EdgeError> => errorClasses[error._tag].failure

export const isEdgeError = (error: unknown): error is EdgeError =>
  typeof error === "object" &&
  error !== null &&
  "_tag" in error &&
  typeof error._tag === "string" &&
  Object.hasOwn(errorClasses, error._tag)

/** This side failed: a client that has received nothing pays nothing for it. */
export const isNodeFault = (error: EdgeError): boolean => failureOf(error).fault === "node"

/** The answer is a 4xx: an ordinary refusal, which operators need no log line for. */
export const isRefusal = (error: EdgeError): boolean => failureOf(error).status < 500

/** The `type` of an error inside a stream or on a socket, in OpenAI's words (protocol 3.5, 11.5). */
export const errorType = (error: EdgeError): "invalid_request_error" | "server_error" =>
  isRefusal(error) ? "invalid_request_error" : "server_error"
