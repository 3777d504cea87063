// The account commands as one program, as src/main.ts assembles them among others.
import { Command } from "effect/cli"
import { keys } from "../../src/cli/Keys.ts"
import { orgs } from "../../src/cli/Orgs.ts"
import { usage } from "../../src/cli/Usage.ts"

export const edgewise = Command.make("edgewise").pipe(Command.withSubcommands([orgs, keys, usage]))
