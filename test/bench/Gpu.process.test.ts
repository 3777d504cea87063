// The GPU suite where there is no card: it says so, and its smaller card is one that a node can read.
import { execFileSync } from "node:child_process"
import { chmodSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { gpuColumns, parseGpus, processColumns } from "#domain/models/NvidiaReport.ts"
import type { Section } from "#harness/report/Result.ts"
import { smallerCard } from "../../bench/gpu/Eviction.ts"
import { gpuDefaults, gpuSuite } from "../../bench/gpu/Suite.ts"
import { fakeNvidiaSmi } from "../support/nodes/FakeNvidiaSmi.ts"
import { temporaryDir } from "../support/nodes/TestNode.ts"

const dir = temporaryDir()
const path = process.env.PATH
afterAll(() => {
  process.env.PATH = path
  dir.remove()
})

const { sections } = gpuSuite(gpuDefaults)

it.live("without a card every section but the setup is not run, and says why", () =>
  Effect.gen(function* () {
    process.env.PATH = dir.path
    const measured: Array<Section> = []
    for (const section of sections.filter((one) => one !== "setup")) {
      const options = { quick: true, profileDir: undefined, threads: undefined, section }
      yield* gpuSuite(gpuDefaults).run(options, (one) => measured.push(one))
    }
    expect(measured).toHaveLength(sections.length - 1)
    for (const { parts } of measured)
      expect(parts).toEqual([
        { title: expect.stringMatching(/: not run$/), method: "nvidia-smi shows no GPU", figures: [] },
      ])
  }).pipe(Effect.scoped),
)

it("the smaller card has the given memory in the columns that the node asks for, and the rest unchanged", () => {
  const uuid = "GPU-00000000-0000-0000-0000-00000000000a"
  const real = fakeNvidiaSmi(dir.path, {
    gpus: `0, ${uuid}, 143771, 1024, 142235, 37, 12, 41, Disabled, NVIDIA H200\n`,
    processes: `${uuid}, 4242, 900, /usr/bin/node\n`,
  })
  const smaller = join(dir.path, "smaller")
  writeFileSync(smaller, smallerCard(real.command, 4_000))
  chmodSync(smaller, 0o755)
  const ask = (query: string) =>
    execFileSync(smaller, [query, "--format=csv,noheader,nounits"], { encoding: "utf8", env: { PATH: path } })
  const mebibyte = 2 ** 20
  expect(parseGpus(ask(`--query-gpu=${gpuColumns.join(",")}`))).toEqual({
    rows: [
      {
        index: 0,
        uuid,
        name: "NVIDIA H200",
        totalBytes: 4_000 * mebibyte,
        usedBytes: 1_024 * mebibyte,
        freeBytes: 2_976 * mebibyte,
        gpuPercent: 37,
        memoryPercent: 12,
        temperatureC: 41,
        mig: false,
      },
    ],
  })
  expect(ask(`--query-compute-apps=${processColumns.join(",")}`)).toBe(`${uuid}, 4242, 900, /usr/bin/node\n`)
})
