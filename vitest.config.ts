import { defineConfig } from "vitest/config"

export default defineConfig({
  test: {
    include: ["test/**/*.test.ts"],
    globalSetup: "test/support/OneTemporaryFolder.ts",
    // Two cores: more forks than that would make every timing in the suite a lie.
    maxWorkers: 2,
    // On a CI machine somebody else may have the core for seconds. A test that passes only at a second try is printed
    // with its number of tries; at a desk there is none, so that it is seen and mended.
    retry: process.env.CI === undefined ? 0 : 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    disableConsoleIntercept: true,
  },
})
