// The log line for refused development keys: at most one a second, with a count, the reason and the setting, and never
// the key. The same for the operator token.
import { expect, it } from "@effect/vitest"
import { Effect, Logger, Option, References } from "effect"
import { HttpServerRequest } from "effect/http"
import { TestClock } from "effect/testing"
import { makeDevelopmentKeyCheck } from "#api/access/DevelopmentKey.ts"
import { OperatorToken } from "#api/access/OperatorToken.ts"
import type { Principal } from "#store/accounts/Accounts.ts"

const principal: Principal = {
  keyId: "key_1",
  orgId: "org_1",
  orgName: "dev",
  userId: "user_1",
  userName: "default",
  scope: "read-write",
  development: true,
}

const requestFrom = (peer: string, headers: Readonly<Record<string, string>> = {}) =>
  HttpServerRequest.fromWeb(new Request("http://127.0.0.1/v1/models", { headers })).modify({
    remoteAddress: Option.some(peer),
  })

interface Line {
  readonly message: unknown
  readonly annotations: Readonly<Record<string, unknown>>
}

const collecting = (lines: Array<Line>) =>
  Logger.layer([
    Logger.make(({ fiber, message }) => {
      lines.push({ message, annotations: { ...fiber.getRef(References.CurrentLogAnnotations) } })
    }),
  ])

it.effect("accepts it from this machine, and every other key from everywhere", () =>
  Effect.gen(function* () {
    const check = makeDevelopmentKeyCheck({ from: "loopback" })
    const from = (peer: string, key = principal) =>
      Effect.provideService(check(key), HttpServerRequest.HttpServerRequest, requestFrom(peer))
    expect(yield* from("127.0.0.1")).toBe(principal)
    expect(yield* from("0000:0000:0000:0000:0000:0000:0000:0001")).toBe(principal)
    for (const peer of ["192.0.2.2", "", "2001:db8::1"])
      expect(yield* Effect.flip(from(peer))).toMatchObject({ _tag: "Unauthorized", reason: "invalid-key" })
    const ordinary = { ...principal, development: false }
    expect(yield* from("192.0.2.2", ordinary)).toBe(ordinary)
  }).pipe(Effect.provide(Logger.layer([]))),
)

it.effect("logs a refusal with its reason, and at most one a second with the count of those before", () => {
  const lines: Array<Line> = []
  return Effect.gen(function* () {
    const check = makeDevelopmentKeyCheck({ from: "loopback" })
    const refuse = Effect.flip(
      Effect.provideService(check(principal), HttpServerRequest.HttpServerRequest, requestFrom("192.0.2.9")),
    )
    yield* Effect.replicateEffect(refuse, 1_000)
    expect(lines).toHaveLength(1)
    expect(lines[0]).toEqual({
      message: ["the development key was refused"],
      annotations: {
        reason: "the request does not come from this machine (EDGEWISE_DEV_KEY=loopback)",
        peer: "192.0.2.9",
        count: 1,
      },
    })
    yield* TestClock.adjust(1_000)
    yield* refuse
    expect(lines.map(({ annotations }) => annotations.count)).toEqual([1, 1_000])
    expect(JSON.stringify(lines)).not.toContain("svc_")
  }).pipe(Effect.provide(collecting(lines)))
})

it.effect("the operator token is refused from other machines, and a line says so without it", () => {
  const lines: Array<Line> = []
  return Effect.gen(function* () {
    const operator = new OperatorToken()
    const from = (peer: string, credential: string, headers?: Readonly<Record<string, string>>) =>
      Effect.provideService(
        operator.authenticate(credential),
        HttpServerRequest.HttpServerRequest,
        requestFrom(peer, headers),
      )
    const invalid = { _tag: "Unauthorized", reason: "invalid-operator" }
    expect(yield* Effect.flip(from("127.0.0.1", ""))).toMatchObject(invalid)
    const token = operator.issue(8080)
    expect(token).toMatch(/^op_8080_[0-9A-Za-z]{43}$/)
    expect(yield* from("127.0.0.1", token)).toMatchObject({ scope: "superadmin" })
    expect(yield* from("::ffff:127.0.0.1", token)).toMatchObject({ scope: "superadmin" })
    expect(yield* Effect.flip(from("192.0.2.9", `${token.slice(0, -2)}00`))).toMatchObject(invalid)
    expect(lines).toEqual([])
    for (const peer of ["192.0.2.9", "2001:db8::1", ""])
      expect(yield* Effect.flip(from(peer, token))).toMatchObject(invalid)
    expect(yield* Effect.flip(from("127.0.0.1", token, { via: "1.1 proxy" }))).toMatchObject(invalid)
    const reason = "the request does not come directly from this machine"
    expect(lines).toEqual([
      { message: ["the operator token was refused"], annotations: { reason, peer: "192.0.2.9", count: 1 } },
    ])
    const second = operator.issue(8080)
    expect(second).not.toBe(token)
    expect(yield* Effect.flip(from("127.0.0.1", token))).toMatchObject(invalid)
  }).pipe(Effect.provide(collecting(lines)))
})
