// Two models that the card cannot hold together by their claims: a request for one evicts the other. Real cards have more memory than two
// generated models claim, so the node of this section is told of a smaller one: a program in front of `nvidia-smi` lowers the memory that
// it prints. Everything else, also what the driver counts as used, is as it is.

import { chmod, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { Effect } from "effect"
import { atMost, figure } from "#harness/report/Figure.ts"
import { ask, asked } from "../support/Ask.ts"
import { startGateway, temporaryFolder } from "../support/Gateway.ts"
import { promptOf } from "../text/sized/Models.ts"
import { failed, pathOf, usedMib } from "./Card.ts"
import {
  answerSeconds,
  type CardSize,
  type Measure,
  onDemand,
  operatorIn,
  settingsOf,
  weightsOf,
} from "./Stage.ts"

export interface EvictionPlan {
  readonly small: CardSize
  readonly large: CardSize
  readonly rounds: number
}

/** The share of a card's memory that a node lets models claim (docs/operations.md). */
const claimable = 0.95

/** A program that prints what `real` prints, with at most `mib` of memory in each row of a query for cards. */
export const smallerCard = (real: string, mib: number): string => `#!${process.execPath}
const { spawnSync } = require("node:child_process")
const { status, stdout } = spawnSync(${JSON.stringify(real)}, process.argv.slice(2), { encoding: "utf8" })
const query = process.argv.find((one) => one.startsWith("--query-gpu="))
const columns = query === undefined ? [] : query.slice("--query-gpu=".length).split(",")
const at = (name) => columns.indexOf(name)
const shrunk = (line) => {
  const fields = line.split(", ")
  if (at("memory.total") < 0 || fields.length < columns.length) return line
  const total = Math.min(Number(fields[at("memory.total")]), ${mib})
  const used = Math.min(Number(fields[at("memory.used")]), total)
  fields[at("memory.total")] = total
  if (at("memory.used") >= 0) fields[at("memory.used")] = used
  if (at("memory.free") >= 0) fields[at("memory.free")] = total - used
  return fields.join(", ")
}
process.stdout.write((stdout ?? "").split("\\n").map(shrunk).join("\\n"))
process.exitCode = status ?? 1
`

interface ModelStatus {
  readonly loaded: ReadonlyArray<string>
}

export const eviction: Measure<EvictionPlan> = (stage, { large, rounds, small }) =>
  Effect.gen(function* () {
    const one = yield* weightsOf(small)
    const two = yield* weightsOf(large)
    const before = yield* usedMib
    // Both together claim more than this, by half of the smaller one.
    const mib = Math.ceil((two.mib + one.mib / 2) / claimable) + before
    const real = pathOf("nvidia-smi")
    if (real === undefined) return yield* failed("nvidia-smi is not on PATH")
    const programs = yield* temporaryFolder
    yield* Effect.promise(async () => {
      const path = join(programs, "nvidia-smi")
      await writeFile(path, smallerCard(real, mib))
      await chmod(path, 0o755)
    })
    const gateway = yield* startGateway({
      models: [onDemand("small", one, stage), onDemand("large", two, stage)],
      settings: { ...settingsOf(stage), EDGEWISE_EVICT_IDLE: "true" },
      programs,
    })
    const { target } = yield* operatorIn(gateway)
    const loaded = Effect.map(
      asked(() => ask<ModelStatus>(target, "/v1/models/status")),
      (status) => status.loaded,
    )
    const readings = yield* Effect.forEach(Array.from({ length: rounds }).keys(), (round) =>
      Effect.gen(function* () {
        const smallSeconds = yield* answerSeconds(gateway, "small", promptOf(round * 3 + 1, 8))
        const withSmall = { models: yield* loaded, mib: (yield* usedMib) - before }
        const largeSeconds = yield* answerSeconds(gateway, "large", promptOf(round * 3 + 2, 8))
        const withLarge = { models: yield* loaded, mib: (yield* usedMib) - before }
        const again = yield* answerSeconds(gateway, "large", promptOf(round * 3 + 3, 8))
        return { smallSeconds, withSmall, largeSeconds, withLarge, again }
      }),
    )
    type Reading = (typeof readings)[number]
    const of = (part: (reading: Reading) => number) => readings.map(part)
    const onlyOne = atMost(1)
    return [
      {
        title: `${small} and ${large} in turn on a card that holds one of them`,
        method:
          `the node is told that the card has ${mib} MiB, ${before} of them in use before; claims of ${one.mib} and ${two.mib} MiB; each ` +
          "request but the first finds the other model loaded and idle",
        figures: [
          figure(
            `reply of ${small}, the other evicted and this one loaded`,
            "s",
            of((each) => each.smallSeconds),
          ),
          figure(
            "  models loaded then",
            "models",
            of(({ withSmall }) => withSmall.models.length),
            onlyOne,
          ),
          figure(
            "  the driver counts more than before",
            "MiB",
            of(({ withSmall }) => withSmall.mib),
          ),
          figure(
            `reply of ${large}, the other evicted and this one loaded`,
            "s",
            of((each) => each.largeSeconds),
          ),
          figure(
            "  models loaded then",
            "models",
            of(({ withLarge }) => withLarge.models.length),
            onlyOne,
          ),
          figure(
            "  the driver counts more than before",
            "MiB",
            of(({ withLarge }) => withLarge.mib),
          ),
          figure(
            `next reply of ${large}`,
            "s",
            of(({ again }) => again),
          ),
        ],
      },
    ]
  })
