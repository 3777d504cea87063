// The error of a wrong setting: the start ends with exit status 2 and one line for each wrong setting.
import { Schema } from "effect"

export class BadSetting extends Schema.TaggedError<BadSetting>()("BadSetting", {
  variable: Schema.String,
  value: Schema.String,
  allowed: Schema.String,
  /** One line for each other wrong setting. */
  others: Schema.optionalKey(Schema.Array(Schema.String)),
}) {
  override get message(): string {
    return `${this.variable}: ${JSON.stringify(this.value)} is not allowed; ${this.allowed}`
  }

  get lines(): ReadonlyArray<string> {
    return [this.message, ...(this.others ?? [])]
  }

  readonly exitStatus = 2
}
