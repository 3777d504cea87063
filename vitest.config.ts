import { availableParallelism } from "node:os"
import { configDefaults, defineConfig } from "vitest/config"
import ByGroup from "./test/support/groups/ByGroup.ts"
import {
  dialectFiles,
  filesOf,
  fullerFiles,
  type Group,
  groups,
  together,
} from "./test/support/groups/Groups.ts"
import { startsPrograms } from "./test/support/process/Programs.ts"

const otherGroups = groups.filter((group) => group !== "fast" && group !== "long").map(filesOf)

/** A run that names a transport is on that one, and needs no second one. */
const oneTransport = process.env.EDGEWISE_TRANSPORT !== undefined

/**
 * Process tests that `npm test` runs on Node's own server, which public listeners have, and not on uWebSockets.js: a part
 * of each kind of exchange (streams, WebSockets, uploads), about half of test/contract. `EDGEWISE_TRANSPORT` set to
 * `uws` or `node` runs all tests on the one that it names.
 */
const onNode = [
  "test/contract/{conversation,embeddings,pictures,responses,text,transcription}/*.process.test.ts",
  "test/contract/requests/ReplyHead.process.test.ts",
]

/** Process tests of the transport itself, and of what depends on how it reads, which `npm test` runs on both. */
const onBoth = [
  "test/transport/Framing.process.test.ts",
  "test/transport/exchange/{HandshakeAndMessages,ReplyWriter,ReplyWriterFailures,RequestBodyLimits,ServerRequest}.process.test.ts",
  "test/transport/server/TransportServer.process.test.ts",
]

/** Files beside those that are named after a group. A run of all groups on Node's transport has no use for the fuller ones. */
const alsoIn: Partial<Record<Group, ReadonlyArray<string>>> = {
  postgres: [dialectFiles],
  long: oneTransport ? [] : fullerFiles(),
}

const excluded: Partial<Record<Group, ReadonlyArray<string>>> = {
  fast: [...otherGroups, filesOf("long")],
  process: oneTransport ? [] : onNode,
}

const project = (group: Group) => ({
  extends: true as const,
  test: {
    name: group,
    include: [filesOf(group), ...(alsoIn[group] ?? [])],
    exclude: [...configDefaults.exclude, ...(excluded[group] ?? [])],
    provide: { group },
    // Files share workers: they import the same modules, which takes two seconds, and none leaves anything behind.
    isolate: false,
    ...(group === "long" ? { testTimeout: 900_000, hookTimeout: 900_000 } : {}),
  },
})

const nodeTransport = {
  extends: true as const,
  test: {
    name: "node-transport",
    include: [...onNode, ...onBoth],
    provide: { group: "process" as const },
    isolate: false,
    env: { EDGEWISE_TRANSPORT: "node" },
  },
}

const secondTransport = oneTransport ? [] : [nodeTransport]

/** Groups that run in the same workers unless the command line names a group: a worker takes three seconds of a processor before its first test. */
const sharedWorkers = {
  extends: true as const,
  test: {
    name: together,
    include: [filesOf("fast")],
    exclude: [...configDefaults.exclude, filesOf("long"), ...(excluded.process ?? [])],
    isolate: false,
  },
}

const namesGroup = process.argv.some((argument) =>
  groups.some((group) => group !== "long" && [group, `--project=${group}`].includes(argument)),
)
const projects = namesGroup ? groups.map(project) : [sharedWorkers, project("long")]

export default defineConfig({
  plugins: [startsPrograms],
  test: {
    projects: [...projects, ...secondTransport],
    sequence: { sequencer: ByGroup },
    globalSetup: ["test/support/process/OneTemporaryFolder.ts", "test/support/process/Stalls.ts"],
    // Catalogs of tests name the fake adapters.
    env: { EDGEWISE_FAKE_ENGINES: "true" },
    setupFiles: ["test/support/groups/Guard.ts", "test/support/wire/setup.ts"],
    reporters: ["default", "./test/support/groups/EndOfRun.ts"],
    // One more than cores, because a worker waits for a quarter of its time, and at most three, each of which may start a browser and a
    // database. Tests must not depend on a worker's share of a core.
    maxWorkers: Math.min(3, availableParallelism() + 1),
    // Property tests make much garbage: with V8's 16 MB for young objects the fast ones took 7 % more of the processor (measured).
    execArgv: ["--max-semi-space-size=32"],
    // Tests that run at the same time within a file wait more than they compute.
    maxConcurrency: 8,
    // So long because they only end what hangs: a slow machine must not decide.
    testTimeout: 120_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    disableConsoleIntercept: true,
  },
})
