// Deletions over each database: nothing of what was deleted is left, nothing of the others is touched, what is on its way comes too
// late, and the sums of what was used stay.
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { textUsage } from "#domain/models/Usage.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { ClientSecrets } from "#store/accounts/ClientSecrets.ts"
import { Deletions } from "#store/deletion/Deletions.ts"
import { StoreUnavailable } from "#store/files/StoreErrors.ts"
import { IdempotencyStore } from "#store/idempotency/IdempotencyStore.ts"
import { Jobs } from "#store/ledger/Jobs.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { Compaction } from "#store/sql/Compaction.ts"
import { ownJobs } from "../../support/nodes/JobRow.ts"
import { eachDialect } from "../Dialects.ts"

const transcript = (text: string) => ({ text, language: "en", duration: 1, segments: [] }) as never

const options = (prompt: string) => ({
  language: null,
  prompt,
  temperature: 0,
  punctuation: null,
  format: "json" as const,
  granularities: [],
})

/** A user of an organization with one of everything, whose texts all contain `mark`. */
const furnish = Effect.fnUntraced(function* (org: string, user: string, mark: string) {
  const accounts = yield* Accounts
  const jobs = yield* Jobs
  const { apiKey, keyId } = yield* accounts.createKey({ org, user })
  const principal = yield* accounts.authenticate(apiKey)
  const { orgId, userId } = principal
  const newJob = (prompt: string) =>
    jobs.accept({ orgId, keyId, model: "stt", options: options(prompt), uploadPath: `/nowhere/${mark}` })
  const finished = (yield* newJob(`${mark} finished`)) ?? ""
  // Also takes what waits of others before.
  while ((yield* jobs.take(ownJobs))?.id !== finished);
  yield* jobs.change({ id: finished, attempt: 1 }, "complete", { transcript: transcript(`${mark} was said`) })
  const waiting = (yield* newJob(`${mark} waits`)) ?? ""
  const answerId = { id: `answer of ${userId}`, orgId, userId }
  const answer = (text: string) => ({
    digest: "d",
    status: 200,
    headers: { "x-mark": mark },
    receiptId: undefined,
    body: Buffer.from(text),
  })
  yield* (yield* IdempotencyStore).keep(answerId, answer(`${mark} was answered`))
  const secret = { principal, expiresAtMs: 4e12, terms: JSON.stringify({ instructions: mark }) }
  yield* (yield* ClientSecrets).create(secret)
  const ledger = yield* UsageLedger
  const settle = Effect.scoped(
    Effect.flatMap(ledger.reserve(principal, 10), (reservation) =>
      ledger.settle(reservation, { model: "llm", usage: textUsage(3, 4), microDollars: 5 }),
    ),
  )
  yield* settle
  return {
    apiKey,
    principal,
    orgId,
    userId,
    keyId,
    finished,
    waiting,
    answerId,
    answer,
    newJob,
    settle,
    secret,
  }
})

const tables = [
  "orgs",
  "users",
  "api_keys",
  "usage_ledger",
  "usage_sums",
  "transcription_jobs",
  "answers",
  "answer_parts",
  "client_secrets",
  "deletions",
]

/** All rows of all tables as one text. */
const everything = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows: Array<string> = []
  for (const table of tables) {
    for (const row of yield* sql.unsafe<Record<string, unknown>>(`SELECT * FROM ${table}`)) {
      const texts = Object.values(row).map((value) =>
        value instanceof Uint8Array ? Buffer.from(value).toString("utf8") : String(value),
      )
      rows.push(`${table} ${texts.join(" ")}`)
    }
  }
  return rows.join("\n")
})

eachDialect(({ fresh: inStore }) => {
  it.effect("of an organization leave nothing of it but sums, and the others as they were", () =>
    Effect.gen(function* () {
      const deletions = yield* Deletions
      const gone = yield* furnish("gone-inc", "gonzo", "violet")
      yield* furnish("gone-inc", "second", "violet")
      const kept = yield* furnish("kept-inc", "kermit", "amber")
      expect(yield* everything).toMatch(/violet/)

      const deleted = yield* deletions.org("gone-inc", { alone: true })
      expect(deleted).toMatchObject({
        orgId: gone.orgId,
        users: 2,
        keys: 2,
        clientSecrets: 2,
        jobs: 4,
        answers: 2,
        receipts: 2,
        waitingUploads: 0,
        kept: [
          { model: "llm", kind: "text", requests: 2, inputTokens: 6, outputTokens: 8, microDollars: 10 },
        ],
      })
      const left = yield* everything
      expect(left).not.toMatch(/violet|gone-inc|gonzo|second/)
      expect(left).toMatch(/amber was said/)
      expect(left).toMatch(/amber was answered/)
      const accounts = yield* Accounts
      expect(yield* accounts.authenticate(kept.apiKey)).toMatchObject({ orgName: "kept-inc" })
      expect((yield* Effect.flip(accounts.authenticate(gone.apiKey)))._tag).toBe("Unauthorized")
      expect(yield* (yield* UsageLedger).deletedUsage).toMatchObject([{ model: "llm", requests: 2 }])

      // Twice: there is none any more, and nothing happens.
      expect((yield* Effect.flip(deletions.org("gone-inc", { alone: true }))).message).toBe(
        "no organization gone-inc",
      )
      // The name is free.
      yield* accounts.createOrg({ name: "gone-inc" })
      expect(yield* (yield* UsageLedger).usage((yield* accounts.showOrg("gone-inc")).id, 0)).toEqual([])
    }).pipe(Effect.provide(inStore)),
  )

  it.effect(
    "come before what is on its way: a job, an answer, a client secret of the deleted are not kept",
    () =>
      Effect.gen(function* () {
        const deletions = yield* Deletions
        const answers = yield* IdempotencyStore
        const org = yield* furnish("gone-inc", "gonzo", "violet")
        const user = yield* furnish("kept-inc", "gonzo", "violet")
        yield* deletions.org("gone-inc", { alone: true })
        yield* deletions.user("kept-inc", "gonzo", { alone: true })
        for (const late of [org, user]) {
          expect(yield* late.newJob("violet again")).toBeUndefined()
          yield* answers.keep({ ...late.answerId, id: "late" }, late.answer("violet again"))
          yield* (yield* ClientSecrets).create(late.secret)
        }
        expect(yield* everything).not.toMatch(/violet/)
        // What it used meanwhile is summed, too.
        yield* org.settle
        yield* (yield* UsageLedger).flush
        yield* deletions.resume
        expect(yield* (yield* UsageLedger).usage(org.orgId, 0)).toMatchObject([
          { requests: 2, microDollars: 10 },
        ])
        expect(yield* everything).not.toMatch(/usage_ledger/)
      }).pipe(Effect.provide(inStore)),
  )

  it.effect("of a user leave the other users of the organization", () =>
    Effect.gen(function* () {
      const deletions = yield* Deletions
      const gone = yield* furnish("acme", "gonzo", "violet")
      const kept = yield* furnish("acme", "kermit", "amber")
      yield* furnish("other", "kermit", "amber")
      expect((yield* Effect.flip(deletions.user("other", "gonzo"))).message).toBe(
        "organization other has no user gonzo",
      )
      expect(yield* deletions.user("acme", "gonzo", { alone: true })).toMatchObject({
        users: 1,
        keys: 1,
        clientSecrets: 1,
        jobs: 2,
        answers: 1,
        receipts: 1,
        kept: [{ model: "llm", requests: 2, microDollars: 10 }],
      })
      expect(yield* everything).not.toMatch(/violet|gonzo/)
      expect((yield* Effect.flip(deletions.user("acme", "gonzo")))._tag).toBe("UserNotFound")
      const jobs = yield* Jobs
      expect(yield* jobs.find(gone.finished)).toBeUndefined()
      expect(yield* jobs.find(kept.finished)).toMatchObject({ status: "completed" })
      expect(yield* jobs.find(kept.waiting)).toMatchObject({ options: options("amber waits") })
      expect((yield* (yield* Accounts).listKeys("acme")).map((key) => key.user)).toEqual(["kermit"])
    }).pipe(Effect.provide(inStore)),
  )

  it.effect("of a job and of kept answers touch no other organization's", () =>
    Effect.gen(function* () {
      const deletions = yield* Deletions
      const one = yield* furnish("one", "u", "violet")
      const other = yield* furnish("other", "u", "amber")
      const wrong = deletions.job("one", other.finished, { alone: true })
      expect((yield* Effect.flip(wrong)).message).toBe(
        `organization one has no job ${JSON.stringify(other.finished)}`,
      )
      for (const id of [one.finished, one.waiting]) {
        expect(yield* deletions.job("one", id, { alone: true })).toMatchObject({
          jobs: 1,
          answers: 0,
          keys: 0,
        })
        expect((yield* Effect.flip(deletions.job("one", id, { alone: true })))._tag).toBe("NoSuchJob")
      }
      expect(yield* deletions.answers("one")).toMatchObject({ jobs: 0, answers: 1 })
      expect(yield* deletions.answers("one")).toMatchObject({ answers: 0 })
      const left = yield* everything
      expect(left).not.toMatch(/violet was/)
      expect(left).toMatch(/amber was said/)
      expect(left).toMatch(/amber was answered/)
    }).pipe(Effect.provide(inStore)),
  )

  it.effect("that were interrupted have taken the names out at once, and are finished later", () =>
    Effect.gen(function* () {
      const full = new StoreUnavailable({ place: "store.sqlite", problem: "no space" })
      const compaction = {
        clean: () => Effect.suspend(() => (fails ? Effect.fail(full) : Effect.void)),
        emptyLogSoon() {},
      }
      let fails = true
      yield* Effect.gen(function* () {
        const deletions = yield* Deletions
        const sql = yield* SqlClient.SqlClient
        yield* furnish("gone-inc", "gonzo", "violet")
        expect((yield* Effect.flip(deletions.org("gone-inc", { alone: true }))).message).toBe(
          "store.sqlite: no space",
        )
        const incomplete = Effect.map(
          sql`SELECT id FROM deletions WHERE complete = 0`,
          (found) => found.length,
        )
        expect([yield* incomplete, /violet|gonzo|gone/.test(yield* everything)]).toEqual([1, false])
        fails = false
        // One that may still be running is left alone.
        yield* deletions.resume
        expect(yield* incomplete).toBe(1)
        const before = (ms: number) => sql`UPDATE deletions SET at_ms = at_ms - ${ms}`
        yield* before(11 * 60_000)
        yield* deletions.resume
        expect(yield* incomplete).toBe(0)
        yield* before(31 * 24 * 60 * 60_000)
        yield* deletions.resume
        expect(yield* sql`SELECT id FROM deletions`).toEqual([])
      }).pipe(Effect.provide(Layer.fresh(inStore)), Effect.provideService(Compaction, compaction))
    }),
  )
})
