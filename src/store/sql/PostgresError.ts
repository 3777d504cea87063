// Converts errors of Postgres and its connections to the error type that SQLite's errors become as well. Only the code
// and the message are kept: the original also carries the statement's values.
import {
  AuthenticationError,
  AuthorizationError,
  ConnectionError,
  ConstraintError,
  DeadlockError,
  LockTimeoutError,
  SerializationError,
  SqlError,
  type SqlErrorReason,
  SqlSyntaxError,
  StatementTimeoutError,
  UniqueViolation,
  UnknownError,
} from "effect/sql/SqlError"
import { problemOf } from "../files/DataDir.ts"

const textOf = (cause: unknown, name: "code" | "constraint_name" | "severity"): string => {
  const value = typeof cause === "object" && cause !== null ? (cause as Record<string, unknown>)[name] : ""
  return typeof value === "string" ? value : ""
}

/** SQLSTATE: five characters with a digit. Node's `EPIPE` has five characters too, but no digit. */
const isFromServer = (code: string): boolean => /^[0-9A-Z]{5}$/.test(code) && /[0-9]/.test(code)

/**
 * True if the connection cannot be used any more: the error did not come from the server, the server calls it fatal, or it
 * takes no writes any more (25006).
 */
export const endsConnection = (cause: unknown): boolean => {
  const code = textOf(cause, "code")
  return (
    !isFromServer(code) ||
    /^(08|57P0|25P03|25006)/.test(code) ||
    /^(FATAL|PANIC)$/.test(textOf(cause, "severity"))
  )
}

/** Replaces Node's message for a server that ends the connection when asked for TLS. */
const plain = (message: string): string =>
  message.includes("before secure TLS connection was established")
    ? "the server does not speak TLS, and the address says sslmode=require"
    : message

const reasonOf = (cause: unknown): SqlErrorReason => {
  const code = textOf(cause, "code")
  const message = problemOf(cause) === "" ? code : plain(problemOf(cause))
  const props = { cause: Object.assign(new Error(message), { code }), message, operation: "execute" }
  // The server's answer could not be decoded (see PostgresConnection). The connection is closed, although it is not at
  // fault.
  if (cause instanceof RangeError) return new UnknownError(props)
  if (!isFromServer(code) || /^(08|53|57P0|25P03|25006)/.test(code)) return new ConnectionError(props)
  switch (code) {
    case "23505":
      return new UniqueViolation({ ...props, constraint: textOf(cause, "constraint_name") || "unknown" })
    case "40P01":
      return new DeadlockError(props)
    case "40001":
      return new SerializationError(props)
    case "55P03":
      return new LockTimeoutError(props)
    case "57014":
      return new StatementTimeoutError(props)
    case "42501":
      return new AuthorizationError(props)
  }
  switch (code.slice(0, 2)) {
    case "23":
      return new ConstraintError(props)
    case "28":
      return new AuthenticationError(props)
    case "42":
      return new SqlSyntaxError(props)
    default:
      return new UnknownError(props)
  }
}

export const postgresError = (cause: unknown): SqlError => new SqlError({ reason: reasonOf(cause) })

/** A connection that was lost or could not be opened. */
export const connectionLost = (message: string): SqlError =>
  new SqlError({ reason: new ConnectionError({ cause: new Error(message), message, operation: "execute" }) })
