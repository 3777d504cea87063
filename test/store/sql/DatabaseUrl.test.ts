import { expect, it } from "@effect/vitest"
import { hidePassword, parseDatabaseUrl, shownDatabase } from "#store/sql/DatabaseUrl.ts"

it("takes what names a host, and shows host and database alone", () => {
  for (const [url, shown] of [
    ["postgres://me:secret@db.internal:5432/edgewise", "postgres://db.internal:5432/edgewise"],
    ["postgresql://me:se%40cret@[::1]/edgewise?sslmode=require", "postgres://[::1]/edgewise"],
    ["postgres://db", "postgres://db"],
    [
      "postgres://me:secret@db-1:5432,db-2:5433/edgewise?sslmode=require",
      "postgres://db-1:5432,db-2:5433/edgewise",
    ],
  ] as const) {
    expect(parseDatabaseUrl(url)).toBe(url)
    expect(shownDatabase(url)).toBe(shown)
  }
})

it("refuses the rest, and repeats nothing secret of it", () => {
  for (const text of [
    "db.internal",
    "mysql://me:secret@db/edgewise",
    "postgres://",
    "postgres:///edgewise",
    "postgres://me:secret@db:port/edgewise",
    "postgres://me:secret@db/a/b",
    "postgres://me:secret@db-1:5432,db-2:port/edgewise",
    "postgres://me:secret@db-1:5432,/edgewise",
    "postgres://me:secret%@db/edgewise",
    "postgres:/me:secret@db/edgewise",
    "postgres://me:se@secret@db:x/edgewise",
    "postgres://me:sec/ret:secret@db/x/y?password=secret",
    "me:secret@db",
  ]) {
    expect([text, parseDatabaseUrl(text)]).toEqual([text, undefined])
    expect(hidePassword(text)).not.toContain("secret")
  }
  expect(hidePassword("mysql://me:secret@db/edgewise")).toBe("mysql://…@db/edgewise")
})
