// A certificate and its key, checked: what each mistake is called, and what a good pair says of itself.
import { createPrivateKey, X509Certificate } from "node:crypto"
import { describe, expect, it } from "vitest"
import { checkPair, expiresSoon, isProblem } from "#domain/access/Certificate.ts"
import { makeAuthority, makePair, p256, rsa } from "../../support/servers/TestCertificates.ts"

const now = new Date()
const good = await makePair({ names: ["edge.example.com", "*.example.org", "192.0.2.7", "2001:db8::7"] })
const other = await makePair()
const problem = (cert: string, key: string): string => {
  const checked = checkPair(cert, key, now)
  return isProblem(checked) ? `${checked.file}: ${checked.problem}` : "none"
}

describe("a pair that belongs together", () => {
  it("says its fingerprint, its dates and the hosts it is for", () => {
    const checked = checkPair(good.cert, good.key, now)
    if (isProblem(checked)) throw new Error(checked.problem)
    expect(checked.fingerprint).toBe(new X509Certificate(good.cert).fingerprint256)
    expect(checked.names).toEqual(["edge.example.com", "*.example.org", "192.0.2.7", "2001:DB8:0:0:0:0:0:7"])
    expect(checked.notAfter.getTime() - now.getTime()).toBeGreaterThan(89 * 24 * 3_600_000)
    const hosts = [
      "edge.example.com",
      "a.example.org",
      "192.0.2.7",
      "2001:db8::7",
      "example.com",
      "192.0.2.8",
    ]
    expect(hosts.map(checked.covers)).toEqual([true, true, true, true, false, false])
  })

  it("may be RSA, come in older key formats, and be followed by its chain", async () => {
    const authority = await makeAuthority()
    const signed = await makePair({ issuer: authority, algorithm: rsa(2048) })
    const chain = `${signed.cert}\n${authority.certificate.toString("pem")}\n`
    expect(problem(chain, signed.key)).toBe("none")
    const older = createPrivateKey(good.key).export({ type: "sec1", format: "pem" }).toString()
    expect(older).toContain("BEGIN EC PRIVATE KEY")
    expect(problem(`some words first\r\n${good.cert}`, older)).toBe("none")
  })
})

describe("a mistake is named", () => {
  const damaged = good.cert.replace(/\n[A-Za-z0-9+/]{20}/, "\nAAAAAAAAAAAAAAAAAAAA")
  const encrypted = createPrivateKey(good.key)
    .export({ type: "pkcs8", format: "pem", cipher: "aes-256-cbc", passphrase: "x" })
    .toString()
  it.each<readonly [name: string, cert: string, key: string, words: RegExp]>([
    ["an empty certificate file", "", good.key, /^cert: holds no certificate in PEM format/],
    ["a certificate in binary form", "\x30\x82\x01", good.key, /^cert: holds no certificate in PEM/],
    ["files exchanged", good.key, good.cert, /^cert: holds a private key .* exchanged\?$/],
    ["a damaged certificate", damaged, good.key, /^cert: certificate 1 of 1 is damaged$/],
    ["an empty key file", good.cert, "", /^key: holds no private key in PEM format/],
    ["a certificate as the key", good.cert, good.cert, /^key: holds a certificate .* exchanged\?$/],
    ["a damaged key", good.cert, good.key.replace(/\nM/, "\nA"), /^key: the private key is damaged$/],
    ["a key with a password", good.cert, encrypted, /^key: the private key is protected by a password; /],
    ["another certificate's key", good.cert, other.key, /^key: the private key is not the one of/],
    ["the chain before the certificate", other.cert + good.cert, good.key, /come first, and it is number 2$/],
  ])("%s", (_, cert, key, words) => {
    expect(problem(cert, key)).toMatch(words)
    expect(problem(cert, key)).not.toContain("\n")
  })

  it("keys that no client takes", async () => {
    const short = await makePair({ algorithm: rsa(1024) })
    expect(problem(short.cert, short.key)).toBe("key: an RSA key needs at least 2048 bits, this one has 1024")
    const ed = await import("node:crypto").then(({ generateKeyPairSync }) => generateKeyPairSync("ed25519"))
    const pem = ed.privateKey.export({ type: "pkcs8", format: "pem" }).toString()
    expect(problem(good.cert, pem)).toBe("key: allowed keys are RSA, and ECDSA on P-256, P-384, P-521")
  })

  it("a certificate that has expired, or is not valid yet", async () => {
    const past = await makePair({ fromDays: -20, untilDays: -3 })
    expect(problem(past.cert, past.key)).toMatch(
      /^cert: the certificate expired on \d{4}-\d\d-\d\dT[0-9:]+Z$/,
    )
    const future = await makePair({ fromDays: 2 })
    expect(problem(future.cert, future.key)).toMatch(
      /^cert: .* is valid from .*Z on, and the clock says .*Z$/,
    )
  })
})

it.each([
  [13.5, "in 13 days"],
  [1.5, "in 1 day"],
  [15, undefined],
])("a certificate that ends in %d days is warned of: %s", async (days, words) => {
  const { cert, key } = await makePair({ untilDays: days, algorithm: p256 })
  const checked = checkPair(cert, key, now)
  if (isProblem(checked)) throw new Error(checked.problem)
  const said = expiresSoon(checked, now)
  if (words === undefined) expect(said).toBeUndefined()
  else expect(said).toMatch(new RegExp(`^the certificate expires on \\d{4}-.*Z, ${words}$`))
})
