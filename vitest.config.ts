import { configDefaults, defineConfig } from "vitest/config"
import { dialectFiles, filesOf, fullerFiles, type Group, groups } from "./test/support/groups/Groups.ts"

const otherGroups = groups.filter((group) => group !== "fast" && group !== "long").map(filesOf)

/** Files beside those that are named after a group. A run of all groups on Node's transport has no use for the fuller ones. */
const alsoIn: Partial<Record<Group, ReadonlyArray<string>>> = {
  postgres: [dialectFiles],
  long: process.env.EDGEWISE_TRANSPORT === undefined ? fullerFiles() : [],
}

const excluded: Partial<Record<Group, ReadonlyArray<string>>> = {
  fast: [...otherGroups, filesOf("long")],
}

const sharing: ReadonlyArray<Group> = ["fast", "process"]

const project = (group: Group) => ({
  extends: true as const,
  test: {
    name: group,
    include: [filesOf(group), ...(alsoIn[group] ?? [])],
    exclude: [...configDefaults.exclude, ...(excluded[group] ?? [])],
    provide: { group },
    // Files of these groups share workers: they import the same modules, which takes a second, and none leaves anything behind.
    isolate: !sharing.includes(group),
  },
})

/**
 * Process tests that `npm test` runs a second time, on Node's own server, in about half a minute. All others:
 * `npm run test:node-transport`.
 */
const onNodeToo = [
  "test/transport/exchange/{HandshakeAndMessages,ReplyWriter,ReplyWriterFailures,RequestBodyLimits,ServerRequest}.process.test.ts",
  "test/transport/server/TransportServer.process.test.ts",
  "test/contract/requests/ReplyHead.process.test.ts",
  "test/contract/text/ChatReplies.process.test.ts",
  "test/contract/live/LiveCredentials.process.test.ts",
]

const nodeTransport = {
  extends: true as const,
  test: {
    name: "node-transport",
    include: onNodeToo,
    provide: { group: "process" as const },
    isolate: false,
    env: { EDGEWISE_TRANSPORT: "node" },
  },
}

/** A run that is on one transport anyway needs no second one. */
const secondTransport = process.env.EDGEWISE_TRANSPORT === undefined ? [nodeTransport] : []

export default defineConfig({
  test: {
    projects: [...groups.map(project), ...secondTransport],
    globalSetup: "test/support/process/OneTemporaryFolder.ts",
    // Catalogs of tests name the fake adapters.
    env: { EDGEWISE_FAKE_ENGINES: "true" },
    setupFiles: ["test/support/groups/Guard.ts", "test/support/wire/setup.ts"],
    reporters: ["default", "./test/support/groups/SkippedTests.ts"],
    // As many as cores. Three were tried: a fifth faster, and tests with times of some 10 ms failed now and then.
    maxWorkers: 2,
    // Tests that run at the same time within a file wait more than they compute.
    maxConcurrency: 8,
    // So long because they only end what hangs: a slow machine must not decide.
    testTimeout: 120_000,
    hookTimeout: 180_000,
    expect: { poll: { timeout: 60_000 } },
    disableConsoleIntercept: true,
  },
})
