// The certificate that a node makes for itself: kept as long as it is valid, otherwise made again.
import { readFileSync, writeFileSync } from "node:fs"
import { afterEach, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { TestClock } from "effect/testing"
import { ownNames, selfSigned, selfSignedFiles } from "#store/signing/SelfSigned.ts"
import { temporaryDir } from "../../support/process/TemporaryDir.ts"
import { makePair, writePair } from "../../support/servers/TestCertificates.ts"

const dirs: Array<ReturnType<typeof temporaryDir>> = []
const fresh = (): string => {
  const dir = temporaryDir()
  dirs.push(dir)
  return dir.path
}
afterEach(() => {
  for (const dir of dirs.splice(0)) dir.remove()
})
const fingerprint = (dataDir: string) =>
  Effect.map(selfSigned(dataDir), ({ certificate }) => certificate.fingerprint)

it.live("is for every name of the machine, kept, and one for all concurrent calls", () =>
  Effect.gen(function* () {
    const dataDir = fresh()
    const all = yield* Effect.all([fingerprint(dataDir), fingerprint(dataDir), fingerprint(dataDir)], {
      concurrency: 3,
    })
    expect(new Set(all).size).toBe(1)
    const { certificate } = yield* selfSigned(dataDir)
    expect(certificate.fingerprint).toBe(all[0])
    expect(ownNames()).toEqual(expect.arrayContaining(["localhost", "127.0.0.1", "::1"]))
    expect(ownNames().filter((name) => !certificate.covers(name))).toEqual([])
  }),
)

it.live("is made anew where it is damaged, of another key, or lacks a name", () =>
  Effect.gen(function* () {
    const dataDir = fresh()
    const files = selfSignedFiles(dataDir)
    const seen = [yield* fingerprint(dataDir)]
    writeFileSync(files.cert, readFileSync(files.cert, "latin1").slice(0, 200))
    seen.push(yield* fingerprint(dataDir))
    writeFileSync(files.key, (yield* Effect.promise(() => makePair())).key)
    seen.push(yield* fingerprint(dataDir))
    writePair(files, yield* Effect.promise(() => makePair({ names: ["localhost"] })))
    seen.push(yield* fingerprint(dataDir))
    expect(new Set(seen).size).toBe(4)
    expect(yield* fingerprint(dataDir)).toBe(seen[3])
  }),
)

it.effect("is made anew 30 days before its end", () =>
  Effect.gen(function* () {
    const dataDir = fresh()
    yield* TestClock.setTime(Date.now())
    const first = yield* selfSigned(dataDir)
    yield* TestClock.adjust("334 days")
    expect((yield* selfSigned(dataDir)).pem).toBe(first.pem)
    yield* TestClock.adjust("2 days")
    const second = yield* selfSigned(dataDir)
    expect(second.pem).not.toBe(first.pem)
    const days = (second.certificate.notAfter.getTime() - first.certificate.notAfter.getTime()) / 86_400_000
    expect(Math.round(days)).toBe(336)
  }),
)
