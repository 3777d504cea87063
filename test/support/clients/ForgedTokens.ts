// Session tokens that must be refused, each with the expected answer. Some are signed with the node's own key, so that only their
// content is wrong.
import { createHmac, createPrivateKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto"
import type { StoredKey } from "#store/signing/SigningKeyStore.ts"

interface Forged {
  readonly name: string
  readonly token: string
  readonly detail: string
}

const signature = "Invalid token: Signature verification failed"
const algorithm = "Invalid token: Algorithm not allowed"
const type = "Invalid token: Not a session token"
const claimsDetail = "Invalid token: Missing or malformed claims"
const segments = "Invalid token: Not enough segments"
const missing: Readonly<Record<string, string>> = {
  iss: "Invalid token: Invalid issuer",
  aud: "Invalid token: Invalid audience",
}

const encode = (part: unknown): string =>
  Buffer.from(typeof part === "string" ? part : JSON.stringify(part)).toString("base64url")

export const privateKeyOf = ({ d, x }: StoredKey): KeyObject =>
  createPrivateKey({ key: { kty: "OKP", crv: "Ed25519", x, d }, format: "jwk" })

/** Parts may be strings, for JSON that no serialiser writes. */
export const signedWith = (key: KeyObject, header: unknown, payload: unknown): string => {
  const head = `${encode(header)}.${encode(payload)}`
  return `${head}.${sign(null, Buffer.from(head), key).toString("base64url")}`
}

const macWith = (secret: string | Buffer, header: { readonly alg: string }, payload: unknown): string => {
  const head = `${encode(header)}.${encode(payload)}`
  const hash = `sha${header.alg.slice(2)}`
  return `${head}.${createHmac(hash, secret).update(head).digest("base64url")}`
}

/** The payload without one member. */
const without = (claims: object, name: string): object =>
  Object.fromEntries(Object.entries(claims).filter(([each]) => each !== name))

export const forgedTokens = (stored: StoredKey, good: string, claims: object): ReadonlyArray<Forged> => {
  const key = privateKeyOf(stored)
  const stranger = generateKeyPairSync("ed25519")
  const strangerJwk = stranger.publicKey.export({ format: "jwk" })
  const publicJwk = { kty: "OKP", crv: "Ed25519", x: stored.x }
  const header = { alg: "EdDSA", typ: "session+jwt", kid: stored.kid }
  const now = Math.floor(Date.now() / 1000)
  const [goodHeader = "", goodClaims = "", goodSignature = ""] = good.split(".")

  const rows: Array<Forged> = []
  const add = (name: string, token: string, detail: string) => rows.push({ name, token, detail })
  const head = (name: string, change: unknown, detail: string) =>
    add(`header: ${name}`, signedWith(key, change, claims), detail)
  const body = (name: string, change: unknown, detail: string) =>
    add(`claims: ${name}`, signedWith(key, header, change), detail)

  for (const alg of ["none", "None", "NONE", "nOnE", ""]) {
    const front = `${encode({ ...header, alg })}.${goodClaims}`
    add(`alg ${alg} unsigned`, `${front}.`, algorithm)
    add(`alg ${alg} with our signature`, `${front}.${goodSignature}`, algorithm)
  }
  const secrets = {
    "public x": stored.x,
    "public bytes": Buffer.from(stored.x, "base64url"),
    "public JWK": JSON.stringify(publicJwk),
    "public PEM": createPrivateKey({ key: { ...publicJwk, d: stored.d }, format: "jwk" })
      .export({ format: "pem", type: "pkcs8" })
      .toString(),
    "key id": stored.kid,
    nothing: "",
  }
  for (const [name, secret] of Object.entries(secrets)) {
    for (const alg of ["HS256", "HS512"])
      add(`${alg} with ${name}`, macWith(secret, { ...header, alg }, claims), algorithm)
  }
  for (const alg of ["RS256", "ES256", "PS256", "Ed25519", "Ed448", "eddsa", "EdDSA ", null, 1, ["EdDSA"]])
    head(`alg ${JSON.stringify(alg)}`, { ...header, alg }, algorithm)
  head("no alg", without(header, "alg"), algorithm)
  head("alg twice", `{"alg":"none","alg":"EdDSA","typ":"session+jwt","kid":"${stored.kid}"}`, signature)
  head("spaces", JSON.stringify(header, undefined, 1), signature)
  head("an array", [header], signature)
  head("null", null, signature)
  head("no JSON", "EdDSA", signature)

  for (const typ of ["JWT", "jwt", "at+jwt", "session", "SESSION+JWT", "application/session+jwt", null])
    head(`typ ${JSON.stringify(typ)}`, { ...header, typ }, type)
  head("no typ", without(header, "typ"), type)

  const strangers = (name: string, change: object) =>
    add(
      `stranger's key: ${name}`,
      signedWith(stranger.privateKey, { ...header, ...change }, claims),
      signature,
    )
  strangers("our kid", {})
  strangers("its own kid", { kid: "stranger" })
  strangers("embedded jwk", { jwk: strangerJwk })
  strangers("jku", { jku: "http://127.0.0.1:9/jwks.json" })
  strangers("x5u", { x5u: "http://127.0.0.1:9/chain.pem" })
  strangers("x5c", { x5c: ["MIIB"] })
  for (const kid of ["", "../../etc/passwd", "' OR 1=1 --", "__proto__", "constructor", 7, null, stored.x])
    head(`kid ${JSON.stringify(kid)}`, { ...header, kid }, signature)
  head("no kid", without(header, "kid"), signature)
  head("our key embedded", { ...header, jwk: publicJwk }, signature)
  head("crit", { ...header, crit: ["exp"] }, signature)
  head("b64 false", { ...header, b64: false, crit: ["b64"] }, signature)

  for (const iss of ["", "Edgewise", "edgewise/", "https://edgewise", ["edgewise"], null])
    body(`iss ${JSON.stringify(iss)}`, { ...claims, iss }, "Invalid token: Invalid issuer")
  for (const aud of ["", "edgewise", "edgewise-auth", [], ["edgewise"], null])
    body(`aud ${JSON.stringify(aud)}`, { ...claims, aud }, "Invalid token: Invalid audience")
  body("a second audience", { ...claims, aud: ["edgewise-edge", "other"] }, claimsDetail)
  for (const name of Object.keys(claims)) {
    body(`no ${name}`, without(claims, name), missing[name] ?? claimsDetail)
  }
  body("exp in the past", { ...claims, iat: now - 4_000, exp: now - 6 }, "Token has expired")
  body("exp long past", { ...claims, iat: now - 90_000, exp: now - 86_400 }, "Token has expired")
  body("older than any session", { ...claims, iat: now - 86_500, exp: now + 900 }, "Token has expired")
  for (const exp of ["9999999999", null, true, {}])
    body(`exp ${JSON.stringify(exp)}`, { ...claims, exp }, claimsDetail)
  body("iat in the future", { ...claims, iat: now + 600 }, "Invalid token: Not yet valid")
  body("iat text", { ...claims, iat: String(now) }, claimsDetail)
  body("nbf in the future", { ...claims, nbf: now + 600 }, "Invalid token: Not yet valid")
  for (const scope of ["admin", "", ["superadmin"], "read-write superadmin", null])
    body(`scope ${JSON.stringify(scope)}`, { ...claims, scope }, claimsDetail)
  body("key_id empty", { ...claims, key_id: "" }, claimsDetail)
  body("key_id of no key", { ...claims, key_id: "key_unknown" }, "Invalid API key")
  body("exp twice", `${JSON.stringify(claims).slice(0, -1)},"exp":${now + 80_000}}`, signature)
  body("scope twice", `${JSON.stringify(claims).slice(0, -1)},"scope":"superadmin"}`, signature)
  body("spaces", JSON.stringify(claims, undefined, 2), signature)
  body("an array", [claims], signature)
  body("a number", 1, signature)
  body("nothing", "", signature)

  add(
    "superadmin in place of read-write",
    `${goodHeader}.${encode({ ...claims, scope: "superadmin" })}.${goodSignature}`,
    signature,
  )
  for (const at of [0, 20, 43, 60, goodSignature.length - 1]) {
    // Also the last digit's unused bits, which the signature does not cover.
    const digit = goodSignature[at] === "A" ? "B" : String.fromCharCode(goodSignature.charCodeAt(at) ^ 1)
    const other = /[A-Za-z0-9_-]/.test(digit) ? digit : "A"
    add(
      `signature, digit ${at}`,
      `${goodHeader}.${goodClaims}.${goodSignature.slice(0, at)}${other}${goodSignature.slice(at + 1)}`,
      signature,
    )
  }
  add("no signature", `${goodHeader}.${goodClaims}.`, signature)
  add("half a signature", `${goodHeader}.${goodClaims}.${goodSignature.slice(0, 43)}`, signature)
  add("padding", `${goodHeader}.${goodClaims}.${goodSignature}==`, signature)
  add("no segment", "token", segments)
  add("one dot", "a.b", segments)
  add("two segments", `${goodHeader}.${goodClaims}`, segments)
  add("four segments", `${good}.${goodSignature}`, signature)
  add("five segments", `${good}.a.b`, signature)
  add("dots alone", "..", signature)
  add("nonsense", "a.b.c", signature)
  add("too long for any credential", `${goodHeader}.${"A".repeat(5_000)}.${goodSignature}`, "Invalid API key")
  return rows
}
