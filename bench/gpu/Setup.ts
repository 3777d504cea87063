// `edgewise setup cuda` as an operator runs it: how long it takes, and whether the libraries are there afterwards.

import { execFile } from "node:child_process"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { isSetUp } from "#cli/setup/Packages.ts"
import { atLeast, figure, type Part } from "#harness/report/Figure.ts"
import type { GpuStage } from "./Stage.ts"

const main = fileURLToPath(new URL("../../src/main.ts", import.meta.url))

/** Milliseconds. Of a download of 320 MB over 10 Mbit/s. */
const patienceMs = 300_000

const run = (options: ReadonlyArray<string>): Promise<string> =>
  new Promise((resolve) => {
    const args = ["--disable-warning=ExperimentalWarning", main, "setup", "cuda", ...options]
    execFile(process.execPath, args, { timeout: patienceMs }, (_error, stdout, stderr) =>
      resolve(`${stdout}${stderr}`.trim().split("\n").at(-1) ?? ""),
    )
  })

export const setup = ({ from }: GpuStage): Effect.Effect<Part> =>
  Effect.promise(async () => {
    const before = isSetUp("cuda")
    const startedMs = performance.now()
    const said = await run(from === undefined ? [] : ["--from", from])
    const seconds = (performance.now() - startedMs) / 1_000
    return {
      title: `edgewise setup cuda${from === undefined ? "" : " --from"}`,
      method: `${before ? "the libraries were installed before" : "nothing was installed before"}; its last line: ${said}`,
      figures: [
        figure("the command", "s", [seconds]),
        figure("installed afterwards", "1 is yes", [isSetUp("cuda") ? 1 : 0], atLeast(1)),
      ],
    }
  })
