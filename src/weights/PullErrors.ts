// Why a file could not be pulled. `message` is the one line the command line prints; code branches on tag and reason.
// No token and no query string ever gets in here: redirects carry signed addresses.
import { Schema } from "effect"

/** The hub said no, and would say it again. */
export class HubRefused extends Schema.TaggedError<HubRefused>()("HubRefused", {
  source: Schema.String,
  host: Schema.String,
  status: Schema.Int,
  /** Whether a token was sent. */
  withToken: Schema.Boolean,
}) {
  override get message() {
    return `${this.source}: ${this.host} answered ${this.status}: ${this.reason}`
  }
  private get reason(): string {
    switch (this.status) {
      case 401:
        return this.withToken
          ? "the token in HF_TOKEN is not accepted"
          : "the repository needs a token, or does not exist; set HF_TOKEN"
      case 403:
        return this.withToken
          ? "the token in HF_TOKEN may not read this repository; its terms may have to be accepted first"
          : "the repository is not open to everybody; set HF_TOKEN"
      case 404:
        return "no such repository, revision or file"
      default:
        return "not what a file is answered with"
    }
  }
}

/** What came is not what was declared: a sum, a size, or an answer that makes no sense. */
export class PullCorrupt extends Schema.TaggedError<PullCorrupt>()("PullCorrupt", {
  source: Schema.String,
  problem: Schema.String,
}) {
  override get message() {
    return `${this.source}: ${this.problem}`
  }
}

/** The connection failed again and again, or the hub did. */
export class HubUnreachable extends Schema.TaggedError<HubUnreachable>()("HubUnreachable", {
  source: Schema.String,
  host: Schema.String,
  problem: Schema.String,
  attempts: Schema.Int,
}) {
  override get message() {
    return `${this.source}: ${this.host}: ${this.problem}, after ${this.attempts} attempts; what came is kept, pull again to go on`
  }
}

/** The file cannot be kept: no room, no permission. */
export class CannotKeep extends Schema.TaggedError<CannotKeep>()("CannotKeep", {
  source: Schema.String,
  problem: Schema.String,
}) {
  override get message() {
    return `${this.source}: ${this.problem}`
  }
}

export type PullError = HubRefused | PullCorrupt | HubUnreachable | CannotKeep
