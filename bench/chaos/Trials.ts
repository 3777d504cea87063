// Harms one engine process after the other while clients of every kind are served, and measures: what its own clients
// received and how soon, when it answered again, and the effect on other clients.
import { Clock, Effect, Fiber } from "effect"
import { percentile } from "#harness/figures/Statistics.ts"
import {
  atLeast,
  atMost,
  besideFloor,
  type Figure,
  figure,
  ofEach,
  type Part,
  readingsOf,
} from "#harness/report/Figure.ts"
import type { ChildFailed } from "../support/Child.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import type { Answer } from "./crowdMain.ts"
import { commit, type Fault, faults, isDead } from "./Faults.ts"
import { isPermittedFailure, type Kind, kinds } from "./Models.ts"
import { enginePid, reload, type Stage } from "./Stage.ts"

/** A fault and the kind of engine that it happens to. */
export type Harm = readonly [Kind, Fault]

export const everyHarm: ReadonlyArray<Harm> = faults.flatMap((fault) =>
  kinds.map((kind): Harm => [kind, fault]),
)

export interface TrialsPlan extends RoundsPlan {
  /** Each happens once a round. */
  readonly harms: ReadonlyArray<Harm>
  /** Quiet time before every fault, to compare with; milliseconds. */
  readonly quietMs: number
}

interface Trial {
  readonly kind: Kind
  readonly fault: Fault
  /** From the process's death to the end of its client's reply; undefined if the reply was complete. */
  readonly failedMs: number | undefined
  readonly permitted: boolean
  /** From the death to the end of the next answer, divided by the time of a load with an answer in the same trial. */
  readonly backMs: number
  readonly coldMs: number
  readonly quiet: ReadonlyArray<Answer>
  readonly during: ReadonlyArray<Answer>
}

/** Milliseconds. No client waits longer for anything here; a longer wait counts as hanging. */
const patienceMs = 20_000

const epochMs = Effect.map(Clock.currentTimeNanos, (ns) => Number(ns) / 1e6)

/** When the process died or its client had its reply, whichever came first, on the clients' clock. */
const death = (pid: number, client: Fiber.Fiber<unknown, unknown>): Effect.Effect<number> =>
  Effect.gen(function* () {
    for (let waitedMs = 0; waitedMs < patienceMs; waitedMs += 2) {
      if (isDead(pid) || client.pollUnsafe() !== undefined) break
      yield* Effect.sleep(2)
    }
    return yield* epochMs
  })

const good = ({ status, whole }: Answer): boolean => status === 200 && whole

const takeTrial = (
  stage: Stage,
  plan: TrialsPlan,
  kind: Kind,
  fault: Fault,
): Effect.Effect<Trial, ChildFailed> =>
  Effect.gen(function* () {
    const { crowd, gateway } = stage
    const { target } = gateway
    const loadMs = yield* reload(stage, kind)
    const first = yield* crowd.ask("ask", { kind, target })
    // The load is over, and the bystanders of this kind are served again.
    yield* Effect.sleep(300)
    yield* crowd.ask("seen")
    yield* Effect.sleep(plan.quietMs)
    const quiet = yield* crowd.ask("seen")

    const pid = yield* enginePid(stage, kind)
    const victim = yield* crowd.ask("victim", { kind, target })
    const faultMs = yield* epochMs
    yield* commit(fault, pid)
    const harmed = yield* Effect.forkChild(crowd.ask("victimAnswer", victim))
    // A signal kills at once. A stopped or starved process dies when the node notices it; a starved one may survive.
    const diedMs = fault === "SIGKILL" || fault === "SIGSEGV" ? faultMs : yield* death(pid, harmed)
    const back = yield* Effect.suspend(() => crowd.ask("ask", { kind, target })).pipe(
      Effect.repeat({ until: good, times: 20 }),
    )
    const reply = yield* Fiber.join(harmed)
    const failed = isPermittedFailure(kind, reply)
    // Before its death the process served the victim's long request with full memory, possibly for seconds. That time is
    // neither quiet nor a fault.
    const sinceMs = fault === "out of memory" ? diedMs : faultMs
    const during = (yield* crowd.ask("seen")).filter(
      (answer) => answer.kind !== kind && answer.endedMs >= sinceMs,
    )
    return {
      kind,
      fault,
      failedMs: failed ? Math.max(0, reply.endedMs - diedMs) : undefined,
      // Between two of its windows a transcription loses nothing: the next engine continues it.
      permitted: failed || good(reply),
      backMs: good(back) ? back.endedMs - diedMs : Number.POSITIVE_INFINITY,
      coldMs: loadMs + first.endedMs - first.sentMs,
      quiet: quiet.filter((answer) => answer.kind !== kind),
      during,
    }
  })

const latencies = (answers: ReadonlyArray<Answer>, kind: Kind): ReadonlyArray<number> =>
  answers.filter((answer) => answer.kind === kind).map(({ endedMs, sentMs }) => endedMs - sentMs)

/** Figures of the clients of the engine that died. */
const ownFigures = (trials: ReadonlyArray<Trial>): ReadonlyArray<Figure> =>
  kinds.flatMap((kind) =>
    faults.flatMap((fault) => {
      const own = trials.filter((trial) => trial.kind === kind && trial.fault === fault)
      if (own.length === 0) return []
      const permitted = own.filter((trial) => trial.permitted).length / own.length
      return [
        figure(`${kind}, ${fault}: harmed as promised`, "share", [permitted], atLeast(1)),
        figure(
          "  after the death",
          "ms",
          own.flatMap(({ failedMs }) => failedMs ?? []),
          atMost(250),
        ),
        ...besideFloor(
          ofEach(own, `${kind}, ${fault}: a cold load`, "ms", ({ coldMs }) => coldMs),
          ofEach(own, `${kind}, ${fault}: answers again`, "ms", ({ backMs }) => backMs),
          atMost(2),
        ),
      ]
    }),
  )

/** Figures of all other clients. */
const otherFigures = (trials: ReadonlyArray<Trial>): ReadonlyArray<Figure> => {
  const during = trials.flatMap((trial) => trial.during)
  const quiet = trials.flatMap((trial) => trial.quiet)
  const bad = during.filter((answer) => !good(answer)).length
  return [
    figure("answers to others during faults", "", [during.length]),
    figure("  failed", "", [bad], atMost(0)),
    ...kinds.flatMap((kind) => {
      const loud = latencies(during, kind)
      const calm = latencies(quiet, kind)
      const p99 = (name: string, values: ReadonlyArray<number>) =>
        readingsOf(`${kind}, ${name}, p99`, "ms", [percentile(values, 0.99)])
      return [
        figure(`${kind}, answers in the quiet`, "", [calm.length]),
        figure("  during faults", "", [loud.length]),
        figure(`${kind}, quiet, p50`, "ms", [percentile(calm, 0.5)]),
        figure(`${kind}, while another engine dies and comes back, p50`, "ms", [percentile(loud, 0.5)]),
        ...besideFloor(
          p99("quiet", calm),
          p99("while another engine dies and comes back", loud),
          atMost(1.5),
        ),
      ]
    }),
  ]
}

export const trials = (stage: Stage, plan: TrialsPlan): Effect.Effect<ReadonlyArray<Part>, ChildFailed> =>
  Effect.gen(function* () {
    yield* stage.crowd.ask("begin", stage.gateway.target)
    const rounds = yield* repeatRounds(plan, () =>
      Effect.forEach(plan.harms, ([kind, fault]) => takeTrial(stage, plan, kind, fault)),
    )
    yield* stage.crowd.ask("end")
    const all = rounds.flat()
    return [
      {
        title: `Engine processes come to harm: ${all.length} times`,
        method:
          "every kind alternately, under a long request of its own and short ones of all kinds; a cold load is an " +
          "operator's load and one answer, in the same trial; out of memory is a limit on the address space at what " +
          "the process has, so its death comes when it asks for more",
        figures: ownFigures(all),
      },
      {
        title: "Everybody else",
        method:
          "one short request of each other kind at a time, 40 ms apart; quiet is the time before each fault and its " +
          "victim's request; the rest from the fault (or, where memory is full, the death) until the engine has " +
          "answered again",
        figures: otherFigures(all),
      },
    ]
  })
