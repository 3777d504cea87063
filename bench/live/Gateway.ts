// The cost of live sessions in the gateway process itself: memory of silent sessions, and CPU time of a
// frame against a bare uWebSockets.js echo.
import { Effect } from "effect"
import { atMost, besideFloor, figure, ofEach, type Part } from "#harness/report/Figure.ts"
import type { Child, ChildFailed } from "../support/Child.ts"
import type { Gateway } from "../support/Gateway.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import type { EchoCommands } from "./echoMain.ts"
import { attempt } from "./Sessions.ts"
import { Speaker } from "./Speaker.ts"
import { speech } from "./Speech.ts"

/** Transcribes made-up words at no cost: the subject is the gateway. */
export const idleModel = "listener"

const openMany = async (gateway: Gateway, count: number): Promise<ReadonlyArray<Speaker>> => {
  const speakers: Array<Speaker> = []
  while (speakers.length < count) {
    try {
      const more = Math.min(25, count - speakers.length)
      const fresh = Array.from({ length: more }, () => Speaker.open(gateway.target, idleModel, 10))
      speakers.push(...(await Promise.all(fresh)))
    } catch {
      // New sessions count as speaking at first; a moment later they are known to be silent.
      await new Promise((resolve) => setTimeout(resolve, 500))
    }
  }
  return speakers
}

/** Waits until the transport and the garbage collector are done. */
const settled = attempt(() => new Promise((resolve) => setTimeout(resolve, 1_000)))

export const memorySection = (gateway: Gateway, sessions: number): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const open = (count: number) => attempt(() => openMany(gateway, count))
    const closeAll = (speakers: ReadonlyArray<Speaker>) => {
      for (const speaker of speakers) speaker.close()
    }
    // Allocations that the process makes once are not counted for the sessions.
    closeAll(yield* open(100))
    yield* settled
    const before = yield* gateway.child.ask("memory")
    const speakers = yield* open(sessions)
    yield* settled
    const after = yield* gateway.child.ask("memory")
    closeAll(speakers)
    const perSessionKb = (key: keyof typeof before) => (after[key] - before[key]) / 1024 / sessions
    const residentKb = perSessionKb("residentBytes")
    const heapKb = perSessionKb("heapBytes")
    return {
      title: "Sessions that say nothing",
      method:
        `${sessions} open sessions without audio; what the gateway's memory grew by, a session, with garbage ` +
        "collected and given back to the system before each look",
      figures: [
        figure("resident memory of an idle session", "KB", [residentKb]),
        figure("its share of the JavaScript heap", "KB", [heapKb]),
        // Pages that were resident and empty before appear only in the growth of the heap.
        figure("  the larger of both", "KB", [Math.max(residentKb, heapKb)], atMost(25)),
      ],
    }
  })

export interface FramePlan extends RoundsPlan {
  readonly sessions: number
  /** Frames of 20 ms that one session sends in a round. */
  readonly frames: number
}

export const frameSection = (
  gateway: Gateway,
  echo: Child<EchoCommands>,
  plan: FramePlan,
): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const port = yield* echo.ask("port")
    const samples = speech(110)
    const target = { port, key: "" }
    /** Sends all frames, one for each tick of the timer, and returns the microseconds of a frame. */
    const block = (where: typeof target, cpu: Effect.Effect<number, ChildFailed>) =>
      Effect.gen(function* () {
        const speakers = yield* attempt(() =>
          Promise.all(Array.from({ length: plan.sessions }, () => Speaker.open(where, idleModel, 10))),
        )
        const before = yield* cpu
        yield* attempt(async () => {
          for (let at = 0; at < plan.frames; at++) {
            for (const speaker of speakers) speaker.send(samples)
            await new Promise((resolve) => setTimeout(resolve, 2))
          }
          await new Promise((resolve) => setTimeout(resolve, 100))
        })
        const after = yield* cpu
        for (const speaker of speakers) speaker.close()
        return (after - before) / (plan.frames * plan.sessions)
      })
    const cpuOf = (child: Child<EchoCommands>) => Effect.map(child.ask("cpu"), ({ cpuUs }) => cpuUs)
    const gatewayCpu = Effect.map(gateway.child.ask("cpu"), ({ cpuUs }) => cpuUs)
    const rounds = yield* repeatRounds(plan, () =>
      Effect.gen(function* () {
        const floor = yield* block(target, cpuOf(echo))
        return { floor, subject: yield* block(gateway.target, gatewayCpu) }
      }),
    )
    return {
      title: "A frame of 20 ms",
      method:
        `${plan.sessions} sessions, ${plan.frames} frames each, alternately to the gateway (windows of 10 s, an engine ` +
        "that costs nothing) and to a bare uWebSockets.js echo; CPU of the process",
      figures: besideFloor(
        ofEach(rounds, "bare uWebSockets.js echo", "us CPU", ({ floor }) => floor),
        ofEach(rounds, "gateway", "us CPU", ({ subject }) => subject),
      ),
    }
  })
