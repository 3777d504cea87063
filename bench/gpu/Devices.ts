// The operators' records of the cards beside what `nvidia-smi` says to the bench.

import { Effect } from "effect"
import { atMost, figure } from "#harness/report/Figure.ts"
import { fakeModel } from "../operations/Models.ts"
import { ask, asked } from "../support/Ask.ts"
import { startGateway } from "../support/Gateway.ts"
import { cards } from "./Card.ts"
import { type Measure, operatorIn } from "./Stage.ts"

export interface DevicesPlan {
  readonly readings: number
}

interface Status {
  readonly total_gpus: number
  readonly gpus: ReadonlyArray<{
    readonly index: number
    readonly name: string
    readonly memory: { readonly total_mb: number; readonly used_mb: number; readonly free_mb: number }
    readonly temperature_c: number
  }>
}

/** Milliseconds between two readings: a node asks the driver at most every two seconds. */
const pauseMs = 2_100

export const devices: Measure<DevicesPlan> = (_stage, { readings }) =>
  Effect.gen(function* () {
    const gateway = yield* startGateway({ models: [fakeModel] })
    const { target } = yield* operatorIn(gateway)
    const smiMs: Array<number> = []
    const recordMs: Array<number> = []
    const differences: Array<number> = []
    let shown: Status | undefined
    for (let reading = 0; reading < readings; reading++) {
      yield* Effect.sleep(pauseMs)
      const beganMs = performance.now()
      const own = yield* cards
      const askedMs = performance.now()
      const status = yield* asked(() => ask<Status>(target, "/v1/gpu/status"))
      recordMs.push(performance.now() - askedMs)
      smiMs.push(askedMs - beganMs)
      shown = status
      const same = own.filter(({ index, name, totalMib }) =>
        status.gpus.some(
          (gpu) => gpu.index === index && gpu.name === name && gpu.memory.total_mb === totalMib,
        ),
      )
      differences.push(Math.max(own.length, status.gpus.length) - same.length)
    }
    const first = shown?.gpus[0]
    return [
      {
        title: "Records of the cards",
        method:
          "/v1/gpu/status of a node with a fake model, and nvidia-smi beside it: index, name and whole memory of each card",
        figures: [
          figure("cards in the records", "cards", [shown?.total_gpus ?? 0]),
          figure("cards that differ", "cards", differences, atMost(0)),
          figure("memory of the first", "MiB", [first?.memory.total_mb ?? Number.NaN]),
          figure("  used", "MiB", [first?.memory.used_mb ?? Number.NaN]),
          figure("  temperature", "degrees C", [first?.temperature_c ?? Number.NaN]),
          figure("nvidia-smi alone, one query", "ms", smiMs),
          figure("the record, asked when the last one is too old", "ms", recordMs),
        ],
      },
    ]
  })
