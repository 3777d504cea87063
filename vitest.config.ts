import { configDefaults, defineConfig } from "vitest/config"

/** Tests of minutes: `npm run test:long` runs them and no others. */
const longTests = "test/**/*.long.test.ts"

export default defineConfig(({ mode }) => ({
  test: {
    include: mode === "long" ? [longTests] : ["test/**/*.test.ts"],
    exclude: mode === "long" ? configDefaults.exclude : [...configDefaults.exclude, longTests],
    globalSetup: "test/support/process/OneTemporaryFolder.ts",
    // Two cores: more forks than that would make every timing in the suite a lie.
    maxWorkers: 2,
    // On a CI machine another process may have the core for seconds. A test that passes only at a second try is printed
    // with its number of tries; at a desk there is none, so that it is seen and mended.
    retry: process.env.CI === undefined ? 0 : 2,
    testTimeout: 30_000,
    hookTimeout: 60_000,
    disableConsoleIntercept: true,
  },
}))
