// The signing keys of a data directory: made once, private to their owner, rotated while tokens are valid, shared by
// processes.
import { chmodSync, existsSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs"
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { clockSkewMs, maxSessionMs } from "#domain/access/SigningSchedule.ts"
import { StoreUnavailable } from "#store/files/StoreErrors.ts"
import { signingKeyFile } from "#store/signing/SigningKeyFile.ts"
import { rotateSigningKeys, SigningKeys } from "#store/signing/SigningKeys.ts"
import { tempDir } from "../TempDir.ts"

const dayMs = 24 * 60 * 60 * 1000
const layer = (dataDir: string, makesKeys = true) =>
  SigningKeys.layer({ dataDir, makesKeys, rotateEveryMs: 30 * dayMs })

/** The view of a process over this directory. */
const open = (dataDir: string, makesKeys = true) =>
  Effect.map(Layer.build(layer(dataDir, makesKeys)), (context) => context).pipe(
    Effect.flatMap((context) => Effect.provideContext(SigningKeys, context)),
  )
const publishedIds = (keys: SigningKeys["Service"]) =>
  Effect.map(keys.published, (published) => published.map(({ kid }) => kid))
const soon = TestClock.adjust(3_000)

it.effect("makes one key, for its owner alone, and finds it again", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const first = yield* open(dataDir)
    const { kid } = yield* first.signer
    expect(yield* publishedIds(first)).toEqual([kid])
    const file = signingKeyFile(dataDir)
    expect(statSync(file).mode & 0o777).toBe(0o600)
    // No draft is left behind.
    expect(readdirSync(dataDir)).toEqual(["signing-keys.json", "signing-keys.lock"])
    const second = yield* open(dataDir)
    expect((yield* second.signer).kid).toBe(kid)
    expect(yield* second.find(kid)).toBeDefined()
    expect(yield* second.find("another")).toBeUndefined()
    expect([second.has(kid), second.has("another")]).toEqual([true, false])
    const published = JSON.stringify(yield* second.published)
    expect(published).not.toContain(JSON.parse(readFileSync(file, "utf8")).keys[0].d)
  }).pipe(Effect.scoped),
)

// In real time: they wait for each other's lock on the file.
it.live("two processes that start at once agree on one key", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const opened = Effect.flatMap(open(dataDir), (node) => node.signer)
    const signers = yield* Effect.all(
      Array.from({ length: 8 }, () => opened),
      { concurrency: "unbounded" },
    )
    // At once, not after the next read: every process must be able to verify what another signs.
    const ids = signers.map(({ kid }) => kid)
    expect(new Set(ids).size).toBe(1)
  }).pipe(Effect.scoped),
)

it.effect(
  "announces the next key at its age, signs with it later, and forgets the last when its tokens have ended",
  () =>
    Effect.gen(function* () {
      const dataDir = yield* tempDir
      const keys = yield* open(dataDir)
      const { kid: old } = yield* keys.signer
      yield* TestClock.adjust(30 * dayMs - 5 * 60_000)
      const announced = yield* publishedIds(keys)
      expect(announced).toHaveLength(2)
      expect((yield* keys.signer).kid).toBe(old)

      yield* TestClock.adjust(11 * 60_000)
      const { kid: next } = yield* keys.signer
      expect(next).toBe(announced[1])
      yield* TestClock.adjust(maxSessionMs - 60_000)
      expect(yield* keys.find(old)).toBeDefined()
      yield* TestClock.adjust(60_000 + 10 * 60_000 + clockSkewMs)
      expect(yield* publishedIds(keys)).toEqual([next])
      expect(yield* keys.find(old)).toBeUndefined()
    }).pipe(Effect.scoped),
)

it.effect("a command of another process is seen; --end-all leaves no other key", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const auth = yield* open(dataDir)
    const edge = yield* open(dataDir, false)
    const { kid: old } = yield* auth.signer
    const next = yield* rotateSigningKeys(dataDir, { endAll: false })
    yield* soon
    expect(yield* publishedIds(auth)).toEqual([old, next.kid])
    expect(yield* edge.find(next.kid)).toBeDefined()
    const only = yield* rotateSigningKeys(dataDir, { endAll: true })
    yield* soon
    expect(yield* publishedIds(auth)).toEqual([only.kid])
    expect((yield* auth.signer).kid).toBe(only.kid)
    // A request for all keys waits for the read that the clock has started.
    expect(yield* publishedIds(edge)).toEqual([only.kid])
    expect(yield* edge.find(old)).toBeUndefined()
    expect([edge.has(old), edge.has(only.kid)]).toEqual([false, true])
  }).pipe(Effect.scoped),
)

it.effect("a removed file makes a signer make new keys, and has no effect on a verifier", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const edge = yield* open(dataDir, false)
    expect(yield* edge.find("any")).toBeUndefined()
    expect(existsSync(signingKeyFile(dataDir))).toBe(false)
    const auth = yield* open(dataDir)
    const { kid: old } = yield* auth.signer
    rmSync(signingKeyFile(dataDir))
    yield* soon
    const { kid } = yield* auth.signer
    expect(kid).not.toBe(old)
    yield* soon
    expect(yield* edge.find(kid)).toBeDefined()
    expect(yield* edge.find(old)).toBeUndefined()
  }).pipe(Effect.scoped),
)

it.effect("a file that holds something else stops the start, without quoting it", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const file = signingKeyFile(dataDir)
    for (const text of ["", "secret", '{"keys":[{"kid":"a","x":"secret","d":"secret","createdAtMs":1}]}']) {
      writeFileSync(file, text)
      const error = yield* Effect.flip(open(dataDir))
      expect(error).toBeInstanceOf(StoreUnavailable)
      expect(error.message).not.toContain("secret")
      expect(readFileSync(file, "utf8")).toBe(text)
    }
    writeFileSync(file, '{"keys":[{"kid":"a","x":"AA","d":"AA","createdAtMs":1,"activeAtMs":1}]}')
    expect((yield* Effect.flip(open(dataDir))).message).toContain("not an Ed25519 key")
  }).pipe(Effect.scoped),
)

it.effect("keeps what it has while the file cannot be read", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const keys = yield* open(dataDir)
    const { kid } = yield* keys.signer
    const file = signingKeyFile(dataDir)
    const good = readFileSync(file, "utf8")
    writeFileSync(file, "half a fi")
    chmodSync(file, 0o600)
    yield* soon
    expect(keys.has(kid)).toBe(true)
    expect(yield* keys.find(kid)).toBeDefined()
    writeFileSync(file, good)
    yield* soon
    expect((yield* keys.signer).kid).toBe(kid)
  }).pipe(Effect.scoped),
)
