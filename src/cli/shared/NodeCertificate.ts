// The certificate of a node's listeners: the files that the settings name, their check at the start, and their renewal
// while the node runs.
import { Clock, Duration, Effect, type Scope } from "effect"
import type { Config } from "#config/Settings.ts"
import { type Certificate, expiresSoon } from "#domain/access/Certificate.ts"
import { selfSigned, selfSignedFiles } from "#store/signing/SelfSigned.ts"
import {
  BadCertificate,
  type LoadedPair,
  type PairFiles,
  pairSignature,
  readPair,
} from "#store/signing/TlsFiles.ts"
import type { TlsFiles } from "#transport/ListenAddress.ts"
import type { Listener } from "#transport/server/TransportServer.ts"
import { Reload } from "./Reload.ts"

type TlsSettings = Pick<Config, "tls" | "tlsCert" | "tlsKey" | "dataDir">

const certVariable = "EDGEWISE_TLS_CERT"
const keyVariable = "EDGEWISE_TLS_KEY"

const pairFiles = ({ dataDir, tls, tlsCert, tlsKey }: TlsSettings): PairFiles | undefined => {
  if (tls === "off") return undefined
  if (tls === "self-signed") return selfSignedFiles(dataDir)
  return tlsCert === "" ? undefined : { cert: tlsCert, key: tlsKey, certVariable, keyVariable }
}

/** Undefined if the listeners use plain HTTP. */
export const tlsFiles = (config: TlsSettings): TlsFiles | undefined => pairFiles(config)

/** The problem of settings that contradict each other. */
const contradiction = ({ tls, tlsCert, tlsKey }: TlsSettings): BadCertificate | undefined => {
  const bad = (variable: string, problem: string) => new BadCertificate({ variable, path: "", problem })
  if (tls === "self-signed" && (tlsCert !== "" || tlsKey !== "")) {
    return bad(
      "EDGEWISE_TLS",
      `self-signed makes its own certificate; unset ${certVariable} and ${keyVariable}`,
    )
  }
  if (tlsCert !== "" && tlsKey === "") return bad(keyVariable, `is not set, but ${certVariable} is`)
  if (tlsKey !== "" && tlsCert === "") return bad(certVariable, `is not set, but ${keyVariable} is`)
  return undefined
}

export interface NodeCertificate extends LoadedPair {
  readonly files: PairFiles
  readonly selfSigned: boolean
}

const load = (config: TlsSettings, files: PairFiles): Effect.Effect<LoadedPair, BadCertificate> =>
  config.tls === "self-signed" ? selfSigned(config.dataDir) : readPair(files)

/**
 * Checks the certificate and key, or makes the self-signed ones. Undefined without TLS. To be run before anything
 * listens.
 */
export const nodeCertificate = Effect.fnUntraced(function* (config: TlsSettings) {
  const wrong = contradiction(config)
  if (wrong !== undefined) return yield* wrong
  const files = pairFiles(config)
  if (files === undefined) return undefined
  const pair = yield* load(config, files)
  return { ...pair, files, selfSigned: config.tls === "self-signed" } satisfies NodeCertificate
})

const annotations = ({ fingerprint, notAfter }: Certificate) => ({
  fingerprint,
  validUntil: notAfter.toISOString(),
})

const warnIfItEndsSoon = Effect.fnUntraced(function* (certificate: Certificate) {
  const words = expiresSoon(certificate, new Date(yield* Clock.currentTimeMillis))
  if (words !== undefined) yield* Effect.logWarning(words).pipe(Effect.annotateLogs(annotations(certificate)))
})

/** Cheap on any disk: two `stat` calls. */
const watchEvery = Duration.seconds(2)
const checkDatesEvery = Duration.days(1)

/**
 * Keeps the listeners' certificate current until the scope closes. Reads the files on every reload, and when they have
 * changed and then stayed the same for one interval (both files are seldom replaced in one step). For a pair that fails
 * its checks one warning is logged, and the old pair stays. Polls, because file events are missing on some network file
 * systems, and where a directory in the path is replaced, as in Kubernetes.
 */
export const keepCertificate = Effect.fnUntraced(function* (
  config: TlsSettings,
  first: NodeCertificate,
  listeners: ReadonlyArray<Listener["Service"]>,
): Effect.fn.Return<void, never, Reload | Scope.Scope> {
  const { files } = first
  let current: LoadedPair = first
  // State of the files at the last check.
  let checked = yield* pairSignature(files)
  let pending = checked

  const renew = Effect.gen(function* () {
    checked = yield* pairSignature(files)
    pending = checked
    const pair = yield* load(config, files)
    if (pair.pem === current.pem) return
    yield* Effect.forEach(listeners, (listener) => listener.renewCertificate)
    current = pair
    yield* Effect.logInfo("certificate renewed").pipe(Effect.annotateLogs(annotations(pair.certificate)))
    yield* warnIfItEndsSoon(pair.certificate)
  }).pipe(
    Effect.catch((error) =>
      Effect.logWarning(`the current certificate stays in use: ${error.message || String(error.cause)}`).pipe(
        Effect.annotateLogs(annotations(current.certificate)),
      ),
    ),
  )

  const watch = Effect.gen(function* () {
    const now = yield* pairSignature(files)
    if (now === checked) return
    if (now === pending) return yield* renew
    pending = now
  })

  const daily = Effect.gen(function* () {
    // A self-signed certificate that is about to expire is replaced by reading it.
    if (first.selfSigned) yield* renew
    yield* warnIfItEndsSoon(current.certificate)
  })

  yield* warnIfItEndsSoon(first.certificate)
  const { onReload } = yield* Reload
  yield* onReload("the certificate", renew)
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(watchEvery), watch)))
  yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(checkDatesEvery), daily)))
})
