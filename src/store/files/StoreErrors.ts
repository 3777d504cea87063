// Expected failures of the store's administration. `message` is the line that the command line prints; code branches on
// the tag, never on that text.
import { Schema } from "effect"
import { isSqlError, type SqlError } from "effect/sql/SqlError"

/** The data directory or its database cannot be opened, read or written. */
export class StoreUnavailable extends Schema.TaggedError<StoreUnavailable>()("StoreUnavailable", {
  /** The directory, file or environment variable at fault. */
  place: Schema.String,
  problem: Schema.String,
  /** True if the value of a setting is wrong, not what it points to. */
  isSetting: Schema.optionalKey(Schema.Boolean),
}) {
  override get message() {
    return `${this.place}: ${this.problem}`
  }

  /** Exit status of the command. */
  get exitStatus(): number {
    return this.isSetting === true ? 2 : 1
  }
}

/** A correct statement that failed: a disk error, or a lock that was not released. */
export const notWorking = (error: SqlError): StoreUnavailable =>
  new StoreUnavailable({ place: "store", problem: error.message })

/** True if a fiber died because the store could not be read or written. */
export const isStoreDefect = (defect: unknown): boolean =>
  isSqlError(defect) || defect instanceof StoreUnavailable

/** A name that the rule of AccountName refuses. */
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

/** Organizations that an error names, at most. */
export const namedOrgs = 10

/** None or several, where the caller counted on one. */
export class NotOneOrg extends Schema.TaggedError<NotOneOrg>()("NotOneOrg", {
  orgs: Schema.Array(Schema.String),
}) {
  override get message() {
    const { orgs } = this
    if (orgs.length === 0)
      return "there is no organization yet; edgewise keys create --org NAME makes one with its first key"
    const more = orgs.length > namedOrgs ? " and others" : ""
    return `--org is needed, because there are several organizations: ${orgs.slice(0, namedOrgs).join(", ")}${more}`
  }
}

export class KeyNotFound extends Schema.TaggedError<KeyNotFound>()("KeyNotFound", { keyId: Schema.String }) {
  override get message() {
    return `no key ${JSON.stringify(this.keyId)}`
  }
}

export class UserNotFound extends Schema.TaggedError<UserNotFound>()("UserNotFound", {
  org: Schema.String,
  user: Schema.String,
}) {
  override get message() {
    return `organization ${this.org} has no user ${this.user}`
  }
}

/** No job of that id in the organization. */
export class NoSuchJob extends Schema.TaggedError<NoSuchJob>()("NoSuchJob", {
  org: Schema.String,
  job: Schema.String,
}) {
  override get message() {
    return `organization ${this.org} has no job ${JSON.stringify(this.job)}`
  }
}

/** A credit that is not positive, or that would lift the balance over the largest amount of Money. */
export class InvalidCredit extends Schema.TaggedError<InvalidCredit>()("InvalidCredit", {
  microDollars: Schema.Finite,
}) {
  override get message() {
    return "a credit must be more than 0 USD and leave a balance of at most 1000000000 USD"
  }
}
