// The live doors with session tokens: an expired one is refused before the upgrade however it is handed over, a good one
// is let in as its key is.
import { readFileSync } from "node:fs"
import { join } from "node:path"
import { decodeJwt, decodeProtectedHeader } from "jose"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import type { StoredKey } from "#store/SigningKeyFile.ts"
import { privateKeyOf, signedWith } from "../support/ForgedTokens.ts"
import { type Refused, SocketClient } from "../support/SocketClient.ts"
import { startRoles, type TestRoles } from "../support/TestRoles.ts"

let node: TestRoles
let good: string
let expired: string

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
  expired = signedWith(privateKeyOf(stored), decodeProtectedHeader(good), past)
})
afterAll(() => node.stop())

/** The node has no model that transcribes: who is let in is told that, and nobody else is. */
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
