// Entry point of the account commands, for tests that start a real process.
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { runCommandLine } from "#cli/shared/CommandLine.ts"
import { edgewise } from "./edgewise.ts"

process.exitCode = await Effect.runPromise(
  Effect.provide(runCommandLine(edgewise, process.argv.slice(2), "0.0.0"), NodeServices.layer),
)
