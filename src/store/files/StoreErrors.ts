// What can go wrong with accounts that a person asked for: the expected failures of the store's administration.
// `message` is the one line the command line prints; code branches on the tag, never on that text.
import { Schema } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"

/** The data directory or its database cannot be opened, read or written. */
export class StoreUnavailable extends Schema.TaggedError<StoreUnavailable>()("StoreUnavailable", {
  /** The directory, file or environment variable at fault. */
  place: Schema.String,
  problem: Schema.String,
  /** Whether a setting is wrong, and not what it names. */
  isSetting: Schema.optionalKey(Schema.Boolean),
}) {
  override get message() {
    return `${this.place}: ${this.problem}`
  }

  /** Of a command that it ends. */
  get exitStatus(): number {
    return this.isSetting === true ? 2 : 1
  }
}

/** A statement that failed though nothing is wrong with it: the disk, or a lock that is never given up. */
export const notWorking = (error: SqlError): StoreUnavailable =>
  new StoreUnavailable({ place: "store", problem: error.message })

/** Whether somebody died because the store could not be read or written, and of nothing of his own. */
export const isStoreDefect = (defect: unknown): boolean =>
  isSqlError(defect) || defect instanceof StoreUnavailable

/** A name of an organization or user that AccountName refuses. */
export class InvalidName extends Schema.TaggedError<InvalidName>()("InvalidName", {
  name: Schema.String,
}) {
  override get message() {
    return `${JSON.stringify(this.name)} is not a name: 1 to 64 letters, digits, ".", "_" or "-"`
  }
}

export class OrgExists extends Schema.TaggedError<OrgExists>()("OrgExists", { org: Schema.String }) {
  override get message() {
    return `organization ${this.org} exists already`
  }
}

export class OrgNotFound extends Schema.TaggedError<OrgNotFound>()("OrgNotFound", { org: Schema.String }) {
  override get message() {
    return `no organization ${this.org}`
  }
}

export class KeyNotFound extends Schema.TaggedError<KeyNotFound>()("KeyNotFound", { keyId: Schema.String }) {
  override get message() {
    return `no key ${JSON.stringify(this.keyId)}`
  }
}

/** A credit that is not positive, or would lift the balance over what Money can hold. */
export class InvalidCredit extends Schema.TaggedError<InvalidCredit>()("InvalidCredit", {
  microDollars: Schema.Finite,
}) {
  override get message() {
    return "a credit must be more than 0 USD and leave a balance of at most 1000000000 USD"
  }
}
