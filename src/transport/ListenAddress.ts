// Where a listener listens, and what it can do besides passing on requests.
import { Effect } from "effect"
import { ServeError } from "effect/http/HttpServerError"

/** Paths of PEM files: the certificate with its chain, and its private key without a password. */
export interface TlsFiles {
  readonly cert: string
  readonly key: string
}

export interface ListenAddress {
  /** Numeric address. */
  readonly host: string
  /** 0 picks a free port. */
  readonly port: number
  /** If given, TLS is used. */
  readonly tls?: TlsFiles | undefined
}

export interface Listening {
  readonly port: number
  /** Refuses new connections from now on. */
  readonly stop: () => void
  /** Closes every connection. */
  readonly close: () => void
  /**
   * Reads the certificate files again. New connections get the new certificate, open ones keep theirs. A failure
   * changes nothing. Does nothing without TLS.
   */
  readonly renew: Effect.Effect<void, ServeError>
  /** Number of former certificates that still have open connections. */
  readonly retired: () => number
}

/** The TLS library refuses certificate files that were readable. */
export const refusedFiles = ({ cert, key }: TlsFiles): ServeError =>
  new ServeError({ cause: new Error(`the TLS library cannot use ${cert} with ${key}`) })

/** A guess: certificates last weeks, so a connection older than this many certificates is months old. */
export const retiredCertificates = 16

/** Says that the connections of the oldest certificate were closed. */
export const warnOfRetired = (connections: number): Effect.Effect<void> =>
  Effect.logWarning(
    `more than ${retiredCertificates} former certificates were in use: the connections of the oldest are closed`,
  ).pipe(Effect.annotateLogs({ connections }))
