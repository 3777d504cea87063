// Requests of the command line with JSON bodies and JSON replies.
import { Effect, Schema } from "effect"
import { expectStatus, localFailure, type NodeAccess, send, textOf } from "./NodeClient.ts"

/** The text of a reply with status 200. */
export const getText = Effect.fnUntraced(function* (access: NodeAccess, target: string) {
  const incoming = yield* send(access, { method: "GET", target })
  return yield* textOf(yield* expectStatus(incoming, 200))
})

/** Sends a JSON body, or none, and returns the reply if its status is 200. */
export const postJson = Effect.fnUntraced(function* (
  access: NodeAccess,
  target: string,
  body: object | undefined,
) {
  const text = body === undefined ? "" : JSON.stringify(body)
  const incoming = yield* send(access, {
    method: "POST",
    target,
    headers: { "content-type": "application/json" },
    body: { pieces: text === "" ? [] : [text], sizeBytes: Buffer.byteLength(text) },
  })
  return yield* expectStatus(incoming, 200)
})

export const postForText = (access: NodeAccess, target: string, body: object | undefined) =>
  Effect.flatMap(postJson(access, target, body), textOf)

/** Reads a reply; `what` names what it should have been. */
export const replyReader = <T, E>(schema: Schema.Codec<T, E>, what = "a record") => {
  const decode = Schema.decodeUnknownEffect(Schema.fromJsonString(schema))
  return (text: string) =>
    Effect.mapError(decode(text), () => localFailure(`the node's answer is not ${what}`))
}
