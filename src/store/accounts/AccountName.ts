// The rule for names of organizations and users.
import { Effect } from "effect"
import { InvalidName } from "../files/StoreErrors.ts"

/** Safe in a shell, a path, a log line and a metric label without quoting. */
const shape = /^[A-Za-z0-9._-]{1,64}$/

export const accountNameRule = '1 to 64 letters, digits, ".", "_" or "-"'

export const isAccountName = (name: string): boolean => shape.test(name)

export const accountName = (name: string): Effect.Effect<string, InvalidName> =>
  isAccountName(name) ? Effect.succeed(name) : Effect.fail(new InvalidName({ name }))
