// The account commands as one program, as src/main.ts assembles them among others.
import { Command } from "effect/cli"
import { keys } from "#cli/commands/Keys.ts"
import { orgs } from "#cli/commands/Orgs.ts"
import { receipts } from "#cli/commands/Receipts.ts"
import { usage } from "#cli/commands/Usage.ts"

export const edgewise = Command.make("edgewise").pipe(Command.withSubcommands([orgs, keys, receipts, usage]))
