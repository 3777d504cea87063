// Runs a suite: starts its neighbours, prints what its sections found, and leaves a file for each of them.
import { Clock, Console, Effect, Exit } from "effect"
import { commit } from "#cli/shared/Version.ts"
import { settings } from "#config/Settings.ts"
import { trustNone } from "#domain/access/ClientAddress.ts"
import { describeMachine } from "#harness/report/Machine.ts"
import { chosenTransport, type TransportChoice, transportLine } from "#transport/server/TransportChoice.ts"
import { asText } from "../support/Findings.ts"
import { benchTransport } from "../support/Gateway.ts"
import type { Measured, Suite, SuiteOptions } from "../support/Suite.ts"
import { type Beside, type BesideOptions, startNeighbours } from "./Beside.ts"
import { keepResult, type RunFacts, resultOf } from "./ResultFile.ts"

export interface RunOptions extends SuiteOptions {
  readonly suite: string
  readonly size: string | undefined
  /** One section alone. */
  readonly section: string | undefined
  readonly json: boolean
  /** Whether the results stay in bench/results. */
  readonly keep: boolean
  readonly beside: BesideOptions
}

/** As of a node with its default address, which those of the benches have. */
const transport = Effect.orDie(
  Effect.map(
    chosenTransport({
      transport: benchTransport as TransportChoice,
      host: settings.host.fallback,
      tls: undefined,
      isTrusted: trustNone,
    }),
    transportLine,
  ),
)

export const runSuite = Effect.fnUntraced(function* (suite: Suite, options: RunOptions) {
  const { json, keep, quick, size, threads } = options
  const startedMs = yield* Clock.currentTimeMillis
  const machine = describeMachine(new Date(startedMs))
  const revision = commit()
  const nodes = yield* transport
  const measured: Array<Measured> = []
  let beside: Beside | undefined

  const report = (failure: string | undefined) =>
    Effect.gen(function* () {
      if (failure !== undefined && measured.length === 0) return
      const weights = yield* suite.weights ?? Effect.undefined
      const facts: RunFacts = {
        suite: options.suite,
        ...(size === undefined ? {} : { size }),
        ...(threads === undefined ? {} : { threads }),
        quick,
        machine,
        revision,
        transport: nodes,
        ...(beside === undefined ? {} : { beside }),
        elapsedSeconds: Math.round(((yield* Clock.currentTimeMillis) - startedMs) / 1000),
        ...(failure === undefined ? {} : { failure }),
        ...(weights === undefined ? {} : { weights }),
      }
      const result = resultOf(facts, measured)
      yield* Console.log(json ? JSON.stringify(result, null, 2) : asText(facts, measured))
      if (!keep) return
      const names = keepResult(result)
      if (!json) yield* Console.log(`\nbench/results: ${names.join(", ")}`)
    })

  const ended = (exit: Exit.Exit<void, unknown>) => {
    if (Exit.isSuccess(exit)) return report(undefined)
    return report(Exit.hasInterrupts(exit) ? "interrupted" : "a measurement failed, as the last line says")
  }
  const work = Effect.gen(function* () {
    const neighbours = yield* startNeighbours(options.beside)
    const measuring = suite.run(options, (one) => measured.push(one))
    yield* Effect.raceFirst(measuring, neighbours.died).pipe(
      Effect.onExit((exit) =>
        Effect.gen(function* () {
          if (options.beside.processes > 0) beside = yield* neighbours.used
          yield* ended(exit)
        }),
      ),
    )
  })
  yield* Effect.scoped(work)
})
