#!/usr/bin/env node
// The entry of the command line.
import * as NodeServices from "@effect/platform-node/NodeServices"
import { Effect } from "effect"
import { Command } from "effect/cli"
import { endProcess, runCommandLine } from "#cli/shared/CommandLine.ts"
import { commit, version } from "#cli/shared/Version.ts"

/** Each imported when it is needed: a command that only calls a node starts twice as fast without the server's modules. */
const commands = {
  serve: async () => (await import("#cli/commands/Serve.ts")).serve,
  check: async () => (await import("#cli/commands/Check.ts")).check,
  setup: async () => (await import("#cli/setup/Setup.ts")).setup,
  prove: async () => (await import("#cli/commands/Prove.ts")).prove,
  doctor: async () => (await import("#cli/commands/Doctor.ts")).doctor,
  backup: async () => (await import("#cli/commands/Backup.ts")).backup,
  restore: async () => (await import("#cli/commands/Backup.ts")).restore,
  orgs: async () => (await import("#cli/commands/Orgs.ts")).orgs,
  keys: async () => (await import("#cli/commands/Keys.ts")).keys,
  sessions: async () => (await import("#cli/commands/Sessions.ts")).sessions,
  models: async () => (await import("#cli/models/Models.ts")).models,
  reload: async () => (await import("#cli/commands/ReloadCatalog.ts")).reload,
  logs: async () => (await import("#cli/commands/Logs.ts")).logs,
  tree: async () => (await import("#cli/commands/Tree.ts")).tree,
  receipts: async () => (await import("#cli/commands/Receipts.ts")).receipts,
  usage: async () => (await import("#cli/commands/Usage.ts")).usage,
  chat: async () => (await import("#cli/chat/Chat.ts")).chat,
  talk: async () => (await import("#cli/talk/Talk.ts")).talk,
  transcribe: async () => (await import("#cli/commands/Transcribe.ts")).transcribe,
  speak: async () => (await import("#cli/commands/Speak.ts")).speak,
  bench: async () => (await import("#cli/bench/Bench.ts")).benchCommand,
}

const args = process.argv.slice(2)

/** Only a request for the version asks git for the commit. */
const shownVersion = args.some((arg) => arg === "--version" || arg === "-v")
  ? `${version} (${commit()})`
  : version

/** The command that is named first; all of them where none is, e.g. for `--help` and for a misspelled name. */
const wanted = Object.entries(commands).filter(([name]) => name === args[0])
const loads = wanted.length === 0 ? Object.values(commands) : wanted.map(([, load]) => load)

const edgewise = Command.make("edgewise").pipe(
  Command.withDescription("An OpenAI-style inference server for the edge"),
  Command.withSubcommands(await Promise.all(loads.map((load) => load()))),
)

await endProcess(
  await Effect.runPromise(Effect.provide(runCommandLine(edgewise, args, shownVersion), NodeServices.layer)),
)
