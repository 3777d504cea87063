// Checks that a TLS certificate and a private key belong together and are valid now. Pure. A problem is words that
// complete "<file>: …".
import { createPrivateKey, type KeyObject, X509Certificate } from "node:crypto"

export interface Certificate {
  /** SHA-256 of the certificate in hexadecimal with colons, as browsers and `openssl x509 -fingerprint` print it. */
  readonly fingerprint: string
  /** Host names and addresses for which it is valid; may begin with `*.`. */
  readonly names: ReadonlyArray<string>
  readonly notBefore: Date
  readonly notAfter: Date
  /** True if `host`, a name or a numeric address, is covered. */
  readonly covers: (host: string) => boolean
}

/** The wrong file, and what is wrong with it. */
interface PairProblem {
  readonly file: "cert" | "key"
  readonly problem: string
}

const blocks = /-----BEGIN CERTIFICATE-----[^-]*-----END CERTIFICATE-----/g

/** The certificates of a PEM file in order, or why there are none. */
const readChain = (pem: string): ReadonlyArray<X509Certificate> | string => {
  const texts = pem.match(blocks) ?? []
  if (texts.length === 0) {
    return pem.includes("PRIVATE KEY-----")
      ? "holds a private key and no certificate; are the two files exchanged?"
      : "holds no certificate in PEM format (-----BEGIN CERTIFICATE-----)"
  }
  const chain: Array<X509Certificate> = []
  for (const [i, text] of texts.entries()) {
    try {
      chain.push(new X509Certificate(text))
    } catch {
      return `certificate ${i + 1} of ${texts.length} is damaged`
    }
  }
  return chain
}

const readKey = (pem: string): KeyObject | string => {
  if (!pem.includes("PRIVATE KEY-----")) {
    return pem.includes("-----BEGIN CERTIFICATE-----")
      ? "holds a certificate and no private key; are the two files exchanged?"
      : "holds no private key in PEM format (-----BEGIN PRIVATE KEY-----)"
  }
  if (/ENCRYPTED/.test(pem)) {
    return "the private key is protected by a password; remove it with `openssl pkey -in <file> -out <new file>`"
  }
  try {
    return createPrivateKey(pem)
  } catch {
    return "the private key is damaged"
  }
}

const curves: Readonly<Record<string, string>> = {
  prime256v1: "P-256",
  secp384r1: "P-384",
  secp521r1: "P-521",
}

/** The problem of a key that the TLS library or current clients do not accept. */
const unusableKey = ({ asymmetricKeyDetails, asymmetricKeyType }: KeyObject): string | undefined => {
  const { modulusLength = 0, namedCurve = "" } = asymmetricKeyDetails ?? {}
  if (asymmetricKeyType === "rsa") {
    return modulusLength < 2048
      ? `an RSA key needs at least 2048 bits, this one has ${modulusLength}`
      : undefined
  }
  if (asymmetricKeyType === "ec" && curves[namedCurve] !== undefined) return undefined
  return `allowed keys are RSA, and ECDSA on ${Object.values(curves).join(", ")}`
}

const day = (date: Date): string => date.toISOString().replace(/\.\d+Z$/, "Z")

const namesOf = ({ subjectAltName = "" }: X509Certificate): ReadonlyArray<string> =>
  subjectAltName.split(", ").flatMap((name) => /^(?:DNS|IP Address):(.+)$/.exec(name)?.[1] ?? [])

const isAddress = (host: string): boolean => host.includes(":") || /^[0-9.]+$/.test(host)

const describe = (leaf: X509Certificate): Certificate => ({
  fingerprint: leaf.fingerprint256,
  names: namesOf(leaf),
  notBefore: new Date(leaf.validFrom),
  notAfter: new Date(leaf.validTo),
  covers: (host) => (isAddress(host) ? leaf.checkIP(host) : leaf.checkHost(host)) !== undefined,
})

/** The pair for a server at the time `now`, or its first problem. */
export const checkPair = (certPem: string, keyPem: string, now: Date): Certificate | PairProblem => {
  const chain = readChain(certPem)
  if (typeof chain === "string") return { file: "cert", problem: chain }
  const key = readKey(keyPem)
  if (typeof key === "string") return { file: "key", problem: key }
  const unusable = unusableKey(key)
  if (unusable !== undefined) return { file: "key", problem: unusable }
  const owner = chain.findIndex((certificate) => certificate.checkPrivateKey(key))
  const [leaf] = chain
  if (leaf === undefined || owner < 0) {
    return { file: "key", problem: "the private key is not the one of the certificate" }
  }
  if (owner > 0) {
    const problem = `the server's own certificate has to come first, and it is number ${owner + 1}`
    return { file: "cert", problem }
  }
  const certificate = describe(leaf)
  if (now > certificate.notAfter) {
    return { file: "cert", problem: `the certificate expired on ${day(certificate.notAfter)}` }
  }
  if (now < certificate.notBefore) {
    const problem = `the certificate is valid from ${day(certificate.notBefore)} on, and the clock says ${day(now)}`
    return { file: "cert", problem }
  }
  return certificate
}

export const isProblem = (checked: Certificate | PairProblem): checked is PairProblem => "problem" in checked

/** certbot renews 30 days before the end, so at 14 days its renewals have been failing for long. */
const expiresSoonDays = 14
const dayMs = 24 * 60 * 60 * 1000

/** A warning if the certificate has 14 days or fewer left. */
export const expiresSoon = ({ notAfter }: Certificate, now: Date): string | undefined => {
  const days = Math.floor((notAfter.getTime() - now.getTime()) / dayMs)
  return days < expiresSoonDays
    ? `the certificate expires on ${day(notAfter)}, in ${days} ${days === 1 ? "day" : "days"}`
    : undefined
}
