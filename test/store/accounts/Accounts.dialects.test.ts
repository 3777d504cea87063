import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { setImmediate } from "node:timers/promises"
import { expect, it } from "@effect/vitest"
import { Cause, Effect, Exit, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { isApiKey, prefixOf } from "#domain/access/ApiKey.ts"
import { Unauthorized } from "#domain/wire/Errors.ts"
import { CurrentAccountChanges } from "#store/accounts/AccountChanges.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { developmentKey } from "#store/accounts/DevKey.ts"
import { storeLayer } from "#store/Store.ts"
import { StorePresence } from "#store/sql/StorePresence.ts"
import { eventually } from "../../support/nodes/TestNode.ts"
import { eachDialect } from "../Dialects.ts"
import { tempDir } from "../TempDir.ts"

const invalidKey = new Unauthorized({ reason: "invalid-key" })
const unknownKey = `svc_${"x".repeat(33)}`

/**
 * A change by another process takes effect within five seconds. A database across a socket answers in real time: a read that
 * runs while the clock moves begins its next wait after that, so the clock moves again until the fiber has ended.
 */
const untilEnded = (fiber: Fiber.Fiber<void>): Effect.Effect<void> =>
  Effect.gen(function* () {
    yield* TestClock.adjust("5 seconds")
    yield* Effect.promise(() => setImmediate())
    return fiber.pollUnsafe() === undefined ? yield* untilEnded(fiber) : yield* Fiber.join(fiber)
  })

eachDialect(({ fresh, name, shared }) => {
  it.effect("turns a key into the principal it was made for", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const alice = yield* accounts.createKey({ org: "acme", user: "alice" })
      const operator = yield* accounts.createKey({ org: "acme", scope: "superadmin" })
      expect(isApiKey(alice.apiKey)).toBe(true)
      const principal = yield* accounts.authenticate(alice.apiKey)
      expect(principal).toMatchObject({
        keyId: alice.keyId,
        orgName: "acme",
        userName: "alice",
        scope: "read-write",
      })
      expect(yield* accounts.principalOf(alice.keyId)).toEqual(principal)
      const other = yield* accounts.authenticate(operator.apiKey)
      expect(other).toMatchObject({ scope: "superadmin", userName: "default", orgId: principal.orgId })
      expect(other.userId).not.toBe(principal.userId)
    }).pipe(Effect.provide(fresh)),
  )

  it.effect("refuses what is not a live key", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const { apiKey, keyId } = yield* accounts.createKey({ org: "acme" })
      for (const wrong of [
        "",
        "svc_",
        apiKey.slice(0, -1),
        `${apiKey}0`,
        unknownKey,
        keyId,
        "eyJhbGciOi.e30.x",
      ]) {
        expect(yield* Effect.flip(accounts.authenticate(wrong))).toEqual(invalidKey)
      }
      expect(yield* Effect.flip(accounts.principalOf("key_none"))).toEqual(invalidKey)
      // Cached as valid, and yet refused at once.
      yield* accounts.authenticate(apiKey)
      yield* accounts.principalOf(keyId)
      yield* accounts.revokeKey(keyId)
      expect(yield* Effect.flip(accounts.authenticate(apiKey))).toEqual(invalidKey)
      expect(yield* Effect.flip(accounts.principalOf(keyId))).toEqual(invalidKey)
    }).pipe(Effect.provide(fresh)),
  )

  it.effect("asks the database once for two seconds of the same credential, known or unknown", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const sql = yield* SqlClient.SqlClient
      const { apiKey } = yield* accounts.createKey({ org: "acme" })
      expect(Exit.isSuccess(yield* Effect.exit(accounts.authenticate(apiKey)))).toBe(true)
      expect(Exit.isFailure(yield* Effect.exit(accounts.authenticate(unknownKey)))).toBe(true)
      // A query of a database without this table fails.
      yield* sql`ALTER TABLE api_keys RENAME TO hidden`
      const changes = yield* CurrentAccountChanges
      const before = changes.looks()
      yield* TestClock.adjust(1999)
      // The look that began meanwhile must not see the change that follows.
      if (changes.isShared)
        yield* Effect.promise(() => eventually(() => changes.looks() > before, "it has looked"))
      expect(yield* accounts.authenticate(apiKey)).toMatchObject({ orgName: "acme" })
      expect(yield* Effect.flip(accounts.authenticate(unknownKey))).toEqual(invalidKey)
      yield* sql`ALTER TABLE hidden RENAME TO api_keys`
      // Revoked by another process: noticed when the two seconds are over, or the five of a shared store without its looks.
      yield* sql`UPDATE api_keys SET revoked_at_ms = 1`
      expect(Exit.isSuccess(yield* Effect.exit(accounts.authenticate(apiKey)))).toBe(true)
      yield* TestClock.adjust(name === "SQLite" ? 1 : 5_000)
      expect(yield* Effect.flip(accounts.authenticate(apiKey))).toEqual(invalidKey)
    }).pipe(Effect.provide(fresh)),
  )

  it.effect("refuses at once and without a statement what is not known, while the database is away", () =>
    Effect.gen(function* () {
      let isAway = false
      let isInGrace = false
      const presence = { isAway: () => isAway, isInGrace: () => isInGrace }
      yield* Effect.gen(function* () {
        const accounts = yield* Accounts
        const sql = yield* SqlClient.SqlClient
        const { apiKey } = yield* accounts.createKey({ org: "acme" })
        yield* accounts.authenticate(apiKey)
        // A statement fails with another error, because its table is not there.
        yield* sql`ALTER TABLE api_keys RENAME TO hidden`
        yield* TestClock.adjust(5_000)
        isAway = true
        isInGrace = true
        expect(yield* accounts.authenticate(apiKey)).toMatchObject({ orgName: "acme" })
        const outcome = (credential: string) => {
          // Nothing is waited for: it has ended when `runSync` returns.
          const exit = Effect.runSyncExit(accounts.authenticate(credential))
          return Exit.isFailure(exit) ? String(Cause.squash(exit.cause)) : "answered"
        }
        expect(outcome(unknownKey)).toContain("the database does not answer")
        isInGrace = false
        for (const credential of [apiKey, unknownKey]) {
          expect(outcome(credential)).toContain("the database does not answer")
        }
        isAway = false
        yield* sql`ALTER TABLE hidden RENAME TO api_keys`
        expect(yield* accounts.authenticate(apiKey)).toMatchObject({ orgName: "acme" })
      }).pipe(
        Effect.provide(
          Layer.fresh(Accounts.layer).pipe(
            Layer.provideMerge(Layer.succeed(StorePresence, presence)),
            Layer.provideMerge(fresh),
          ),
        ),
      )
    }),
  )

  it.effect("refuses operators while the database is away, also where all changes are known", () =>
    Effect.gen(function* () {
      let isAway = false
      const presence = { isAway: () => isAway, isInGrace: () => isAway }
      const changes = { isShared: true, isCurrent: () => true, looks: () => 1, listen: () => () => {} }
      yield* Effect.gen(function* () {
        const accounts = yield* Accounts
        const user = yield* accounts.createKey({ org: "acme" })
        const operator = yield* accounts.createKey({ org: "acme", scope: "superadmin" })
        const answered = (apiKey: string) =>
          Effect.map(Effect.exit(accounts.authenticate(apiKey)), Exit.isSuccess)
        const both = Effect.all([answered(user.apiKey), answered(operator.apiKey)])
        expect(yield* both).toEqual([true, true])
        yield* TestClock.adjust(5_000)
        isAway = true
        expect(yield* both).toEqual([true, false])
        isAway = false
        expect(yield* both).toEqual([true, true])
      }).pipe(
        Effect.provide(
          Layer.fresh(Accounts.layer).pipe(
            Layer.provideMerge(Layer.succeed(StorePresence, presence)),
            Layer.provideMerge(Layer.succeed(CurrentAccountChanges, changes)),
            Layer.provideMerge(fresh),
          ),
        ),
      )
    }),
  )

  it.effect("interrupts all work of a key when it is revoked, here or elsewhere, and no other work", () =>
    Effect.gen(function* () {
      const { open } = yield* shared
      const node = yield* Layer.build(yield* open)
      const elsewhere = yield* Layer.build(yield* open)
      yield* Effect.gen(function* () {
        const accounts = yield* Accounts
        const principal = Effect.fnUntraced(function* (user: string) {
          const { apiKey } = yield* accounts.createKey({ org: "acme", user })
          return yield* accounts.authenticate(apiKey)
        })
        const [mine, theirs, safe] = [yield* principal("a"), yield* principal("b"), yield* principal("c")]
        const watch = (who: typeof mine) =>
          Effect.forkChild(accounts.revoked(who), { startImmediately: true })
        const first = yield* watch(mine)
        const second = yield* watch(mine)
        const gone = yield* watch(mine)
        const third = yield* watch(theirs)
        const never = yield* watch(safe)
        yield* Fiber.interrupt(gone)
        const called: Array<string> = []
        accounts.onRevoked(mine, () => called.push("mine"))
        const leave = accounts.onRevoked(mine, () => called.push("gone"))
        leave()
        leave()
        accounts.onRevoked(safe, () => called.push("safe"))

        yield* accounts.revokeKey(mine.keyId)
        yield* Fiber.join(first)
        yield* Fiber.join(second)
        expect(called).toEqual(["mine"])

        yield* Effect.provide(
          Effect.flatMap(Accounts, (other) => other.revokeKey(theirs.keyId)),
          elsewhere,
        )
        expect(third.pollUnsafe()).toBeUndefined()
        yield* untilEnded(third)
        expect(never.pollUnsafe()).toBeUndefined()
        yield* TestClock.adjust("1 minute")
        expect(never.pollUnsafe()).toBeUndefined()
        // Work that begins after the revocation is interrupted as well.
        const late = yield* watch(theirs)
        yield* untilEnded(late)
        yield* Fiber.interrupt(never)
        expect(called).toEqual(["mine"])
      }).pipe(Effect.provide(node))
    }).pipe(Effect.scoped),
  )

  it.effect("administers organizations", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const org = yield* accounts.createOrg({ name: "acme", creditsMicroDollars: 5 })
      expect(org).toMatchObject({ name: "acme", creditsMicroDollars: 5, paymentMethod: false })
      expect(yield* Effect.flip(accounts.createOrg({ name: "acme" }))).toMatchObject({ _tag: "OrgExists" })
      expect((yield* accounts.creditOrg("acme", 250_000)).creditsMicroDollars).toBe(250_005)
      expect(yield* accounts.showOrg("acme")).toEqual({ ...org, creditsMicroDollars: 250_005 })
      expect((yield* accounts.createOrg({ name: "big", paymentMethod: true })).paymentMethod).toBe(true)
      for (const missing of [accounts.showOrg("no"), accounts.creditOrg("no", 1), accounts.listKeys("no")]) {
        expect(yield* Effect.flip(missing as Effect.Effect<unknown, unknown>)).toMatchObject({
          _tag: "OrgNotFound",
        })
      }
      for (const amount of [0, -1, 2 ** 53]) {
        expect(yield* Effect.flip(accounts.creditOrg("acme", amount))).toMatchObject({
          _tag: "InvalidCredit",
        })
      }
      for (const name of ["", "a b", "é", "a/b", "x".repeat(65), "new\nline"]) {
        const error = yield* Effect.flip(accounts.createOrg({ name }))
        expect(error).toMatchObject({ _tag: "InvalidName", name })
        expect(error.message).toMatch(/^[^\n]+$/)
        expect(yield* Effect.flip(accounts.createKey({ org: "acme", user: name }))).toMatchObject({ name })
      }
      expect((yield* accounts.createOrg({ name: `${"x".repeat(61)}._-` })).name).toHaveLength(64)
    }).pipe(Effect.provide(fresh)),
  )

  it.effect("makes the organization of a first key with 5 USD, and no second one", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const made = yield* Effect.all(
        Array.from({ length: 10 }, (_, i) => accounts.createKey({ org: "acme", user: `u${i % 2}` })),
        { concurrency: "unbounded" },
      )
      expect((yield* accounts.showOrg("acme")).creditsMicroDollars).toBe(5_000_000)
      const listed = yield* accounts.listKeys("acme")
      expect(listed.map((key) => key.keyId).sort()).toEqual(made.map((key) => key.keyId).sort())
      expect(new Set(listed.map((key) => key.user))).toEqual(new Set(["u0", "u1"]))
      expect(listed.every((key) => key.revokedAtMs === undefined && key.prefix.length === 12)).toBe(true)
    }).pipe(Effect.provide(fresh)),
  )

  it.effect("revokes once and remembers when", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const { keyId } = yield* accounts.createKey({ org: "acme" })
      yield* TestClock.adjust(1234)
      expect(yield* accounts.revokeKey(keyId)).toEqual({ revokedAtMs: 1234 })
      yield* TestClock.adjust(1000)
      expect(yield* accounts.revokeKey(keyId)).toEqual({ revokedAtMs: 1234 })
      expect((yield* accounts.listKeys("acme"))[0]?.revokedAtMs).toBe(1234)
      expect(yield* Effect.flip(accounts.revokeKey("key_none"))).toMatchObject({ _tag: "KeyNotFound" })
    }).pipe(Effect.provide(fresh)),
  )
})

it.effect("keeps no key that could be read back", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const { apiKey } = yield* Effect.gen(function* () {
      return yield* (yield* Accounts).createKey({ org: "acme" })
    }).pipe(Effect.provide(storeLayer({ dataDir })))
    const bytes = readFileSync(join(dataDir, "store.sqlite")).toString("latin1")
    expect(bytes).toContain(prefixOf(apiKey))
    expect(bytes).not.toContain(apiKey.slice(prefixOf(apiKey).length))
    // The digests hold in the next process: their secret is kept.
    yield* Effect.gen(function* () {
      expect(yield* (yield* Accounts).authenticate(apiKey)).toMatchObject({ orgName: "acme" })
    }).pipe(Effect.provide(storeLayer({ dataDir })))
  }).pipe(Effect.scoped),
)

const startIn = (dataDir: string) =>
  developmentKey(dataDir).pipe(
    Effect.map((key) => key?.apiKey),
    Effect.provide(Layer.fresh(storeLayer({ dataDir }))),
  )

it.effect("makes one development key for an empty data directory and keeps it", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const key = (yield* startIn(dataDir)) ?? ""
    expect(isApiKey(key)).toBe(true)
    expect((statSync(join(dataDir, "dev-key")).mode & 0o777).toString(8)).toBe("600")
    expect(readdirSync(dataDir).filter((name) => name.startsWith("dev-key"))).toEqual(["dev-key"])
    expect(yield* startIn(dataDir)).toBe(key)
    yield* Effect.gen(function* () {
      const accounts = yield* Accounts
      expect(yield* accounts.authenticate(key)).toMatchObject({ orgName: "dev", scope: "read-write" })
      expect(yield* accounts.showOrg("dev")).toMatchObject({
        paymentMethod: false,
        creditsMicroDollars: 100_000_000,
      })
      yield* accounts.revokeKey((yield* accounts.authenticate(key)).keyId)
    }).pipe(Effect.provide(Layer.fresh(storeLayer({ dataDir }))))
    expect(yield* startIn(dataDir)).toBeUndefined()
  }).pipe(Effect.scoped),
)

it.effect("finishes a first start that was cut off, and leaves a store in use alone", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const key = yield* startIn(dataDir)
    // The file exists, the row does not: the state after a crash between the two writes.
    for (const name of readdirSync(dataDir)) if (name.startsWith("store")) rmSync(join(dataDir, name))
    expect(yield* startIn(dataDir)).toBe(key)

    const used = yield* tempDir
    yield* Effect.flatMap(Accounts, (accounts) => accounts.createOrg({ name: "acme" })).pipe(
      Effect.provide(Layer.fresh(storeLayer({ dataDir: used }))),
    )
    expect(yield* startIn(used)).toBeUndefined()
    expect(existsSync(join(used, "dev-key"))).toBe(false)

    const broken = yield* tempDir
    writeFileSync(join(broken, "dev-key"), "not a key\n")
    chmodSync(join(broken, "dev-key"), 0o600)
    expect(yield* Effect.flip(startIn(broken))).toMatchObject({ _tag: "StoreUnavailable" })
  }).pipe(Effect.scoped),
)

it.effect("gives two nodes that start together the same development key", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const keys = yield* Effect.all([startIn(dataDir), startIn(dataDir), startIn(dataDir)], { concurrency: 3 })
    expect(new Set(keys).size).toBe(1)
    expect(isApiKey(keys[0] ?? "")).toBe(true)
  }).pipe(Effect.scoped),
)
