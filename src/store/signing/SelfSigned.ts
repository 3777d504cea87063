// A certificate that the node makes for itself, signs with its own key and keeps in the data directory: TLS for a first
// try on a local network. Clients must be configured to trust it.
import { chmodSync, renameSync, writeFileSync } from "node:fs"
import { hostname, networkInterfaces } from "node:os"
import { join } from "node:path"
import { Worker } from "node:worker_threads"
import { Clock, Effect } from "effect"
import type { Certificate } from "#domain/access/Certificate.ts"
import { makeDir, problemOf } from "../files/DataDir.ts"
import { fileLock } from "../files/FileLock.ts"
import type { SelfSignedPem, SelfSignedRequest } from "./selfSignedMain.ts"
import { BadCertificate, type LoadedPair, type PairFiles, readPair } from "./TlsFiles.ts"

const variable = "EDGEWISE_TLS"

export const selfSignedFiles = (dataDir: string): PairFiles => ({
  cert: join(dataDir, "tls", "self-signed-cert.pem"),
  key: join(dataDir, "tls", "self-signed-key.pem"),
  certVariable: variable,
  keyVariable: variable,
})

const dayMs = 24 * 60 * 60 * 1000
const validDays = 365
/** A certificate with fewer days left is replaced. */
const renewDays = 30
/** Machines with more addresses run containers; the first addresses are the machine's own. */
const maxAddresses = 50

/** Names and addresses under which clients may reach this machine: names first, then numeric addresses. */
export const ownNames = (): ReadonlyArray<string> => {
  const host = hostname()
  const names = /^[A-Za-z0-9.-]{1,63}$/.test(host) && host !== "localhost" ? [host] : []
  // The mDNS name, under which machines of a local network find each other.
  const local = names.filter((name) => !name.includes(".")).map((name) => `${name}.local`)
  const addresses = Object.values(networkInterfaces())
    .flatMap((each) => each ?? [])
    // Link-local IPv6 addresses are only valid together with an interface, which a certificate cannot name.
    .filter(({ address, internal }) => !internal && !address.startsWith("fe80:"))
    .map(({ address }) => address)
  return [
    ...new Set(["localhost", ...names, ...local, "127.0.0.1", "::1", ...addresses.slice(0, maxAddresses)]),
  ]
}

/** Runs on a thread, because the library takes 200 ms to load. */
const make = (request: SelfSignedRequest): Effect.Effect<SelfSignedPem, Error> =>
  Effect.acquireUseRelease(
    Effect.sync(
      () =>
        new Worker(new URL("./selfSignedMain.ts", import.meta.url), {
          name: "self-signed",
          execArgv: ["--disable-warning=ExperimentalWarning"],
          env: {},
          workerData: request,
        }),
    ),
    (worker) =>
      Effect.callback<SelfSignedPem, Error>((resume) => {
        worker.on("message", (made: SelfSignedPem) => resume(Effect.succeed(made)))
        worker.on("error", (error) => resume(Effect.fail(error)))
        worker.on("exit", () => resume(Effect.fail(new Error("the thread that makes it ended"))))
      }),
    (worker) => Effect.promise(() => worker.terminate()),
  )

const write = (path: string, text: string): void => {
  const draft = `${path}.${process.pid}`
  writeFileSync(draft, text, { mode: 0o600 })
  // `mode` above applies to new files only; a draft left by a crash may have another.
  chmodSync(draft, 0o600)
  renameSync(draft, path)
}

const stillGood = ({ covers, notAfter }: Certificate, nowMs: number): boolean =>
  notAfter.getTime() - nowMs > renewDays * dayMs && ownNames().every(covers)

/**
 * The certificate and key in the data directory. Makes new ones if there are none, if they are damaged or end within 30
 * days, and if the machine has a name or address that the certificate lacks. Fails if the data directory cannot be
 * written.
 */
export const selfSigned = (dataDir: string): Effect.Effect<LoadedPair, BadCertificate> => {
  const files = selfSignedFiles(dataDir)
  const bad = (cause: unknown) =>
    new BadCertificate({ variable, path: files.cert, problem: `cannot be made: ${problemOf(cause)}` })
  const attempt = (run: () => void) => Effect.try({ try: run, catch: bad })
  return Effect.scoped(
    Effect.gen(function* () {
      yield* attempt(() => makeDir(join(dataDir, "tls")))
      // Processes on one data directory (e.g. one per role) share one certificate.
      yield* Effect.mapError(
        fileLock(join(dataDir, "tls", "lock"), () => {}),
        bad,
      )
      const nowMs = yield* Clock.currentTimeMillis
      const known = yield* Effect.option(readPair(files))
      if (known._tag === "Some" && stillGood(known.value.certificate, nowMs)) return known.value
      const made = yield* Effect.mapError(make({ names: ownNames(), nowMs, days: validDays }), bad)
      yield* attempt(() => {
        write(files.key, made.key)
        write(files.cert, made.cert)
      })
      return yield* readPair(files)
    }),
  )
}
