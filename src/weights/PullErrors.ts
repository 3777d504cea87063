// Why a file could not be pulled. `message` is the line that the command line prints; code branches on tag and reason.
// Tokens and query strings never appear here: redirects have signed addresses.
import { Schema } from "effect"

/** The hub refused, and another attempt would not help. */
export class HubRefused extends Schema.TaggedError<HubRefused>()("HubRefused", {
  source: Schema.String,
  host: Schema.String,
  status: Schema.Int,
  /** True if a token was sent. */
  withToken: Schema.Boolean,
}) {
  override get message() {
    return `${this.source}: ${this.host} answered ${this.status}: ${this.#reason}`
  }
  get #reason(): string {
    switch (this.status) {
      case 401:
        return this.withToken
          ? "the token in HF_TOKEN is not accepted"
          : "the repository needs a token, or does not exist; set HF_TOKEN"
      case 403:
        return this.withToken
          ? "the token in HF_TOKEN may not read this repository; its terms may have to be accepted first"
          : "the repository is not public; set HF_TOKEN"
      case 404:
        return "no such repository, revision or file; check the name on the hub's page"
      default:
        return "an unexpected status for a file"
    }
  }
}

/** The received data differ from what was declared: sum, size, or a reply that cannot be interpreted. */
export class PullCorrupt extends Schema.TaggedError<PullCorrupt>()("PullCorrupt", {
  source: Schema.String,
  problem: Schema.String,
}) {
  override get message() {
    return `${this.source}: ${this.problem}`
  }
}

/** The connection or the hub failed in every attempt. */
export class HubUnreachable extends Schema.TaggedError<HubUnreachable>()("HubUnreachable", {
  source: Schema.String,
  host: Schema.String,
  problem: Schema.String,
  attempts: Schema.Int,
}) {
  override get message() {
    return `${this.source}: ${this.host}: ${this.problem}, after ${this.attempts} attempts; the received part is kept, pull again to continue`
  }
}

/** The hub cannot be asked what it has. */
export class HubSilent extends Schema.TaggedError<HubSilent>()("HubSilent", {
  source: Schema.String,
  host: Schema.String,
  problem: Schema.String,
  attempts: Schema.Int,
}) {
  override get message() {
    return `${this.source}: ${this.host}: ${this.problem}, after ${this.attempts} attempts; run the command again when the hub answers, or set HF_ENDPOINT to another one`
  }
}

/** The file cannot be stored: no disk space, or no permission. */
export class CannotKeep extends Schema.TaggedError<CannotKeep>()("CannotKeep", {
  source: Schema.String,
  problem: Schema.String,
}) {
  override get message() {
    return `${this.source}: ${this.problem}`
  }
}

export type PullError = HubRefused | PullCorrupt | HubUnreachable | CannotKeep
