// The operator token of this process: who may read it in the data directory is the operator of the node. It is accepted by the
// operators' endpoints alone, and only from this machine.
import { createHash, randomBytes, timingSafeEqual } from "node:crypto"
import { Context, Effect } from "effect"
import { HttpServerRequest } from "effect/http"
import { isLocalCaller } from "#domain/access/Loopback.ts"
import { operatorTokenBytes, operatorTokenFrom } from "#domain/access/OperatorToken.ts"
import { Unauthorized } from "#domain/wire/Errors.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import { refusalLog } from "./DevelopmentKey.ts"
import { peerAddress } from "./RequestAddresses.ts"

/** Of no organization: the endpoints that take the token cost nothing. */
const operator: Principal = {
  keyId: "operator-token",
  orgId: "operator-token",
  orgName: "",
  userId: "operator-token",
  userName: "operator",
  scope: "superadmin",
  development: false,
}

const digestOf = (text: string): Buffer => createHash("sha256").update(text).digest()

/** One answer for a wrong token, one of an earlier start, and one from elsewhere. */
const refused = Effect.fail(new Unauthorized({ reason: "invalid-operator" }))

/** A proxy that the node trusts speaks for others as well. */
const noProxy = () => false

export class OperatorToken {
  /** Undefined until a token is issued. The token itself is only in its file. */
  #digest: Buffer | undefined
  readonly #log = refusalLog("the operator token was refused")

  /** Makes the token of a node that listens on this port. One that was issued before ends. */
  issue(port: number): string {
    const token = operatorTokenFrom(port, randomBytes(operatorTokenBytes))
    this.#digest = digestOf(token)
    return token
  }

  readonly authenticate = (
    credential: string,
  ): Effect.Effect<Principal, Unauthorized, HttpServerRequest.HttpServerRequest> =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
      // Digests have one length, as the comparison needs.
      if (this.#digest === undefined || !timingSafeEqual(digestOf(credential), this.#digest)) return refused
      const peer = peerAddress(request)
      return isLocalCaller({ headers: request.headers, peer }, noProxy)
        ? Effect.succeed(operator)
        : Effect.andThen(this.#log("the request does not come directly from this machine", peer), refused)
    })
}

/** By default none is issued, and every one is refused. */
export const CurrentOperatorToken = Context.Reference<OperatorToken>("edgewise/api/OperatorToken", {
  defaultValue: () => new OperatorToken(),
})
