#!/usr/bin/env node
// The entry of the command line.
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { Command } from "effect/cli"
import { check } from "#cli/commands/Check.ts"
import { doctor } from "#cli/commands/Doctor.ts"
import { keys } from "#cli/commands/Keys.ts"
import { logs } from "#cli/commands/Logs.ts"
import { models } from "#cli/commands/Models.ts"
import { orgs } from "#cli/commands/Orgs.ts"
import { reload } from "#cli/commands/ReloadCatalog.ts"
import { serve } from "#cli/commands/Serve.ts"
import { sessions } from "#cli/commands/Sessions.ts"
import { speak } from "#cli/commands/Speak.ts"
import { transcribe } from "#cli/commands/Transcribe.ts"
import { tree } from "#cli/commands/Tree.ts"
import { usage } from "#cli/commands/Usage.ts"
import { runCommandLine } from "#cli/shared/CommandLine.ts"
import { version } from "#cli/shared/Version.ts"

const edgewise = Command.make("edgewise").pipe(
  Command.withDescription("An OpenAI-style inference server for the edge"),
  Command.withSubcommands([
    serve,
    check,
    doctor,
    orgs,
    keys,
    sessions,
    models,
    reload,
    logs,
    tree,
    usage,
    transcribe,
    speak,
  ]),
)

process.exit(
  await Effect.runPromise(
    Effect.provide(runCommandLine(edgewise, process.argv.slice(2), version), NodeServices.layer),
  ),
)
