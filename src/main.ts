#!/usr/bin/env node
// The door: reads the command and runs it. No default, route or decision.
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { Command } from "effect/cli"
import { check } from "./cli/Check.ts"
import { runCommandLine } from "./cli/CommandLine.ts"
import { doctor } from "./cli/Doctor.ts"
import { keys } from "./cli/Keys.ts"
import { logs } from "./cli/Logs.ts"
import { models } from "./cli/Models.ts"
import { orgs } from "./cli/Orgs.ts"
import { reload } from "./cli/ReloadCatalog.ts"
import { serve } from "./cli/Serve.ts"
import { sessions } from "./cli/Sessions.ts"
import { speak } from "./cli/Speak.ts"
import { transcribe } from "./cli/Transcribe.ts"
import { usage } from "./cli/Usage.ts"
import { version } from "./cli/Version.ts"

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
