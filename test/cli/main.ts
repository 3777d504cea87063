// Entry point of the account commands, for tests that start a real process.
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { endProcess, runCommandLine } from "#cli/shared/CommandLine.ts"
import { edgewise } from "./edgewise.ts"

const args = process.argv.slice(2)
await endProcess(
  await Effect.runPromise(Effect.provide(runCommandLine(edgewise, args, "0.0.0"), NodeServices.layer)),
)
