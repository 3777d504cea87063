// Certificates for tests with any names, dates and keys, self-signed or signed by an authority of the test. Also one pair that all
// clients of this process trust, for nodes and listeners in the test's own process.
import { webcrypto } from "node:crypto"
import { mkdirSync, writeFileSync } from "node:fs"
import { isIP } from "node:net"
import { join } from "node:path"
import tls from "node:tls"
import {
  BasicConstraintsExtension,
  cryptoProvider,
  PemConverter,
  SubjectAlternativeNameExtension,
  type X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509"
import type { TlsFiles } from "#transport/ListenAddress.ts"
import { temporaryDir } from "../process/TemporaryDir.ts"

cryptoProvider.set(webcrypto)

interface TestPair {
  readonly cert: string
  readonly key: string
}

type Keys = webcrypto.CryptoKeyPair
type Algorithm = EcKeyGenParams | RsaHashedKeyGenParams

interface EcKeyGenParams {
  readonly name: "ECDSA"
  readonly namedCurve: string
  readonly hash: string
}

interface RsaHashedKeyGenParams {
  readonly name: "RSASSA-PKCS1-v1_5"
  readonly modulusLength: number
  readonly publicExponent: Uint8Array<ArrayBuffer>
  readonly hash: string
}

export const p256: Algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" }
export const rsa = (modulusLength: number): Algorithm => ({
  name: "RSASSA-PKCS1-v1_5",
  modulusLength,
  publicExponent: new Uint8Array([1, 0, 1]),
  hash: "SHA-256",
})

interface Authority {
  readonly certificate: X509Certificate
  readonly keys: Keys
  readonly algorithm: Algorithm
}

interface PairOptions {
  readonly names?: ReadonlyArray<string>
  /** Start of the validity, days from now; negative: in the past. */
  readonly fromDays?: number
  readonly untilDays?: number
  readonly algorithm?: Algorithm
  readonly issuer?: Authority
}

const dayMs = 24 * 60 * 60 * 1000
const inDays = (days: number): Date => new Date(Date.now() + days * dayMs)

const generateKeys = (algorithm: Algorithm): Promise<Keys> =>
  webcrypto.subtle.generateKey(algorithm, true, ["sign", "verify"]) as Promise<Keys>

const serial = (): string => `01${Buffer.from(webcrypto.getRandomValues(new Uint8Array(8))).toString("hex")}`

/** Each has a name of its own: among trusted authorities of one name OpenSSL takes any for the issuer, and test files share a process. */
export const makeAuthority = async (): Promise<Authority> => {
  const keys = await generateKeys(p256)
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serial(),
    name: [{ CN: [`Test authority ${serial()}`] }],
    notBefore: inDays(-1),
    notAfter: inDays(365),
    keys,
    signingAlgorithm: p256,
    extensions: [new BasicConstraintsExtension(true, undefined, true)],
  })
  return { certificate, keys, algorithm: p256 }
}

export const makePair = async ({
  algorithm = p256,
  fromDays = -1,
  issuer,
  names = ["localhost", "127.0.0.1", "::1"],
  untilDays = 90,
}: PairOptions = {}): Promise<TestPair> => {
  const keys = await generateKeys(algorithm)
  const shared = {
    serialNumber: serial(),
    notBefore: inDays(fromDays),
    notAfter: inDays(untilDays),
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new SubjectAlternativeNameExtension(
        names.map((value) => ({ type: isIP(value) === 0 ? "dns" : "ip", value })),
      ),
    ],
  }
  const subject = [{ CN: [names[0] ?? "test"] }]
  const certificate = await (issuer === undefined
    ? X509CertificateGenerator.createSelfSigned({
        ...shared,
        name: subject,
        keys,
        signingAlgorithm: algorithm,
      })
    : X509CertificateGenerator.create({
        ...shared,
        subject,
        issuer: issuer.certificate.subjectName,
        publicKey: keys.publicKey,
        signingKey: issuer.keys.privateKey,
        signingAlgorithm: issuer.algorithm,
      }))
  const pkcs8 = await webcrypto.subtle.exportKey("pkcs8", keys.privateKey)
  return { cert: `${certificate.toString("pem")}\n`, key: `${PemConverter.encode(pkcs8, "PRIVATE KEY")}\n` }
}

export const writePair = (files: TlsFiles, { cert, key }: TestPair): void => {
  writeFileSync(files.cert, cert)
  writeFileSync(files.key, key)
}

export const filesIn = (folder: string): TlsFiles => {
  mkdirSync(folder, { recursive: true })
  return { cert: join(folder, "cert.pem"), key: join(folder, "key.pem") }
}

// ---------------------------------------------------------------- this process

/** With EDGEWISE_TEST_TLS=1 nodes and listeners of the tests' own process serve TLS. */
export const overTls = process.env.EDGEWISE_TEST_TLS === "1"

/** Ports of this process that serve TLS, for raw clients. */
export const tlsPorts = new Set<number>()

/** Makes fetch, https, `ws` and the `openai` package of this process trust a certificate. */
export const trustHere = (pem: string): void => {
  // Since Node 22.19; the installed types are older.
  const set = Reflect.get(tls, "setDefaultCACertificates") as (pems: ReadonlyArray<string>) => void
  set([...tls.getCACertificates("default"), pem])
}

let own: Promise<TlsFiles> | undefined

/** The certificate pair that this process trusts. */
export const ownFiles = (): Promise<TlsFiles> => {
  own ??= (async () => {
    const pair = await makePair()
    const files = filesIn(temporaryDir().path)
    writePair(files, pair)
    trustHere(pair.cert)
    return files
  })()
  return own
}

/** `http` or `ws`, with an `s` where the listeners of the tests speak TLS. */
export const scheme = (plain: "http" | "ws"): string => (overTls ? `${plain}s` : plain)
