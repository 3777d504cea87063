// Runs a suite: starts its neighbours, prints what its sections found, and leaves a file for each of them.
import { Clock, Console, Effect, Exit } from "effect"
import { commit } from "#cli/shared/Version.ts"
import { settings } from "#config/Settings.ts"
import { trustNone } from "#domain/access/ClientAddress.ts"
import { describeMachine } from "#harness/report/Machine.ts"
import { reportText } from "#harness/report/Report.ts"
import {
  type Neighbours,
  resultForm,
  resultText,
  resultVersion,
  type Section,
} from "#harness/report/Result.ts"
import { chosenTransport, type TransportChoice, transportLine } from "#transport/server/TransportChoice.ts"
import { ChildFailed } from "../support/Child.ts"
import { benchTransport } from "../support/Gateway.ts"
import type { Suite, SuiteOptions } from "../support/Suite.ts"
import { type BesideOptions, startNeighbours } from "./Beside.ts"
import { keepResult, keptResults, type SuiteResult } from "./ResultFile.ts"
import { worseThan } from "./Worse.ts"

interface RunOptions extends SuiteOptions {
  readonly suite: string
  readonly size: string | undefined
  /** One section alone. */
  readonly section: string | undefined
  readonly json: boolean
  /** Whether the results stay in bench/results. */
  readonly keep: boolean
  /** Fails if a counted figure is worse than in bench/results. */
  readonly compare: boolean
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
  const sections: Array<Section> = []
  let neighbours: Neighbours | undefined

  const report = (failure: string | undefined) =>
    Effect.gen(function* () {
      if (failure !== undefined && sections.length === 0) return
      const weights = yield* suite.weights ?? Effect.undefined
      const result: SuiteResult = {
        form: resultForm,
        version: resultVersion,
        suite: options.suite,
        revision,
        machine,
        settings: {
          quick,
          ...(size === undefined ? {} : { size }),
          ...(threads === undefined ? {} : { threads }),
          transport: nodes,
          ...(weights === undefined ? {} : { weights }),
        },
        ...(neighbours === undefined ? {} : { neighbours }),
        elapsedSeconds: Math.round(((yield* Clock.currentTimeMillis) - startedMs) / 1000),
        ...(failure === undefined ? {} : { failure }),
        sections,
      }
      yield* Console.log(json ? resultText(result) : reportText(result))
      if (!keep) return
      const names = keepResult(result)
      if (!json) yield* Console.log(`\nbench/results: ${names.join(", ")}`)
    })

  const ended = (exit: Exit.Exit<void, unknown>) => {
    if (Exit.isSuccess(exit)) return report(undefined)
    return report(Exit.hasInterrupts(exit) ? "interrupted" : "a measurement failed, as the last line says")
  }
  const work = Effect.gen(function* () {
    const beside = yield* startNeighbours(options.beside)
    const measuring = suite.run(options, (one) => sections.push(one))
    yield* Effect.raceFirst(measuring, beside.died).pipe(
      Effect.onExit((exit) =>
        Effect.gen(function* () {
          if (options.beside.processes > 0) neighbours = yield* beside.used
          yield* ended(exit)
        }),
      ),
    )
  })
  yield* Effect.scoped(work)
  if (!options.compare) return
  const kept = [...keptResults().values()].filter((result) => result.suite === options.suite)
  const problems = sections.flatMap((section) =>
    worseThan(
      kept.flatMap((result) => result.sections).find(({ name }) => name === section.name),
      section,
    ),
  )
  if (problems.length > 0) {
    return yield* new ChildFailed({
      child: `bench ${options.suite}`,
      detail: `worse than bench/results\n${problems.join("\n")}`,
    })
  }
  if (!json) yield* Console.log("\nno counted figure is worse than in bench/results")
})
