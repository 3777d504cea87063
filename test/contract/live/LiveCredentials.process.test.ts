// The live endpoints with session tokens: an expired one is refused before the upgrade wherever it stands, a valid one
// is accepted like its key.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { decodeJwt, decodeProtectedHeader, type JWTPayload } from "jose"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { endOf, type SessionClaims } from "#api/access/SessionToken.ts"
import type { StoredKey } from "#store/signing/SigningKeyStore.ts"
import { privateKeyOf, signedWith } from "../../support/clients/ForgedTokens.ts"
import { type Refused, SocketClient } from "../../support/clients/SocketClient.ts"
import { startRoles, type TestRoles } from "../../support/nodes/TestRoles.ts"

let node: TestRoles
let good: string
let expired: string
/** A session token of the key that expires after this many seconds. */
let lasting: (seconds: number) => string

beforeAll(async () => {
  node = await startRoles()
  const response = await fetch(`${node.base.auth}/v1/auth/session`, {
    method: "POST",
    headers: { authorization: `Bearer ${node.devKey}` },
  })
  good = ((await response.json()) as { session_token: string }).session_token
  const stored = JSON.parse(readFileSync(join(node.dataDir, "signing-keys.json"), "utf8"))
    .keys[0] as StoredKey
  const claims = decodeJwt(good)
  const past = { ...claims, iat: claims.iat! - 7_200, exp: claims.exp! - 7_200 }
  const sign = (payload: JWTPayload) => signedWith(privateKeyOf(stored), decodeProtectedHeader(good), payload)
  expired = sign(past)
  lasting = (seconds) =>
    sign({ ...claims, exp: Math.ceil((Date.now() - endOf({ exp: 0 } as SessionClaims)) / 1000) + seconds })
})
afterAll(() => node.stop())

/** The node has no model that transcribes: an accepted caller gets that error, a refused one does not. */
const answers = async (path: string, token: string): Promise<ReadonlyArray<readonly [number, string]>> => {
  const base = `${node.base.edge.replace("http", "ws")}${path}`
  const inQuery = `${base}${path.includes("?") ? "&" : "?"}token=${token}`
  const refusals = [
    await SocketClient.connect(inQuery),
    await SocketClient.connect(base, { authorization: `Bearer ${token}` }),
    await SocketClient.connect(base, {}, [`openai-insecure-api-key.${token}`]),
  ] as ReadonlyArray<Refused>
  return refusals.map(({ body, status }) => [status, (JSON.parse(body) as { detail: string }).detail])
}

describe.each(["/v1/audio/transcriptions/ws", "/v1/realtime?intent=transcription"])(
  "a session token at %s",
  (path) => {
    it("that has expired is 401, in the query, the header and the subprotocol", async () => {
      const refused = [401, "Token has expired"]
      expect(await answers(path, expired)).toEqual([refused, refused, refused])
    })

    it("that is good is let in", async () => {
      const letIn = [404, "Model not loaded"]
      expect(await answers(path, good)).toEqual([letIn, letIn, letIn])
    })
  },
)

it("a socket ends with the session token that opened it, and not with that of another", async () => {
  const base = `${node.base.edge.replace("http", "ws")}/v1/completions/ws?token=`
  const other = await SocketClient.open(base + good)
  // A busy machine may take longer for the handshake than a token lasts, which is refused then.
  let socket = await SocketClient.connect(base + lasting(1))
  for (let seconds = 2; !(socket instanceof SocketClient); seconds *= 2) {
    expect(socket.status).toBe(401)
    socket = await SocketClient.connect(base + lasting(seconds))
  }
  expect(await socket.closed).toEqual({ code: 1008, reason: "session token expired" })
  expect(other.socket.readyState).toBe(other.socket.OPEN)
  other.socket.close()
})
