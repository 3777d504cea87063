// Padding before texts in rows of a SQLite store, so that deleting a row overwrites every copy of its texts.
//
// SQLite keeps the first bytes of a row in a page of its table, at most 4061 of a page of 4096, and the rest in overflow pages that
// belong to this row alone. When it splits or merges pages of a table, it copies the rows in them, and an unused part of a page may keep
// an old copy, which a later deletion does not overwrite. Overflow pages are never copied, and `PRAGMA secure_delete` overwrites all of
// them when their row is changed or deleted. A row that holds 4096 bytes of padding before its texts has all of them in overflow pages.
//
// Postgres has no use for it.
import type { SqlClient } from "effect/sql/SqlClient"

/** More than a page of a table holds of a row. */
const paddingBytes = 4096

const blanks = " ".repeat(paddingBytes)

interface Padding {
  /** The text with blanks in front, which readers of JSON skip. */
  readonly json: (text: string) => string
  /** Value of a column that stands before the one with the bytes. */
  readonly bytes: Uint8Array
}

export const makePadding = (sql: SqlClient): Padding =>
  sql.onDialectOrElse({
    pg: (): Padding => ({ json: (text) => text, bytes: new Uint8Array(0) }),
    orElse: (): Padding => ({ json: (text) => blanks + text, bytes: new Uint8Array(paddingBytes) }),
  })
