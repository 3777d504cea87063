// Why a file was not fetched. `detail` is a sentence for the client and never holds content of the file.
import { Schema } from "effect"

/** A file could not be fetched from the client's address. */
export class FetchRefused extends Schema.TaggedError<FetchRefused>()("FetchRefused", {
  reason: Schema.Literals([
    "BadUrl",
    "NotPublic",
    "NotResolved",
    "Redirects",
    "Status",
    "Encoding",
    "TooLarge",
    /** The reply came in far too many small pieces. */
    "Scattered",
    "TimedOut",
    "Failed",
    "Busy",
  ]),
  detail: Schema.String,
}) {}
