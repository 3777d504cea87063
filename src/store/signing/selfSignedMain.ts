// The thread that makes a self-signed certificate. Receives one SelfSignedRequest and sends one SelfSignedPem.
import { webcrypto } from "node:crypto"
import { isIP } from "node:net"
import { hostname } from "node:os"
import { parentPort, workerData } from "node:worker_threads"
import {
  BasicConstraintsExtension,
  cryptoProvider,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509CertificateGenerator,
} from "@peculiar/x509"

export interface SelfSignedRequest {
  /** Host names and numeric addresses. */
  readonly names: ReadonlyArray<string>
  readonly nowMs: number
  readonly days: number
}

export interface SelfSignedPem {
  readonly cert: string
  readonly key: string
}

/** The certificate's start lies an hour back, for clients whose clocks are behind. */
const clockSkewMs = 60 * 60 * 1000

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" }

const makeSelfSigned = async ({ days, names, nowMs }: SelfSignedRequest): Promise<SelfSignedPem> => {
  cryptoProvider.set(webcrypto)
  const keys = await webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"])
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: Buffer.from(webcrypto.getRandomValues(new Uint8Array(15)))
      .toString("hex")
      .replace(/^/, "01"),
    name: [{ O: ["edgewise"] }, { CN: [hostname().slice(0, 64) || "localhost"] }],
    notBefore: new Date(nowMs - clockSkewMs),
    notAfter: new Date(nowMs + days * 24 * 60 * 60 * 1000),
    keys,
    signingAlgorithm: algorithm,
    extensions: [
      // Firefox refuses a server certificate that may sign others.
      new BasicConstraintsExtension(false, undefined, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) === 0 ? "dns" : "ip", value })),
      ),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  })
  const pkcs8 = await webcrypto.subtle.exportKey("pkcs8", keys.privateKey)
  return { cert: `${certificate.toString("pem")}\n`, key: `${PemConverter.encode(pkcs8, "PRIVATE KEY")}\n` }
}

const port = parentPort
if (port === null) throw new Error("selfSignedMain runs as a worker thread")
void makeSelfSigned(workerData as SelfSignedRequest).then((made) => port.postMessage(made))
