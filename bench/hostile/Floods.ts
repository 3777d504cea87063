// All attacks on conversations at once against a gateway with a small heap: whether it lives, how much memory it takes, and what
// another client sees of it.
import { Effect, type Scope } from "effect"
import { atLeast, atMost, besideFloor, figure, type Part, readingsOf } from "#harness/report/Figure.ts"
import type { ChildFailed } from "../support/Child.ts"
import { conversationAttacks } from "./AttackPlans.ts"
import { attackers, take, whisper } from "./Attacks.ts"
import { models } from "./Models.ts"
import { forgetPeak, isHealthy, resident, startStage } from "./Stage.ts"

export interface FloodsPlan {
  readonly heapMib: number
  readonly seconds: number
}

const mib = 1024 * 1024
const quietSeconds = 10
const most = { times: 3 }

export const floods = ({
  heapMib,
  seconds,
}: FloodsPlan): Effect.Effect<ReadonlyArray<Part>, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const stage = yield* startStage({
      models: [...models, ...whisper],
      others: false,
      limits: "as delivered",
      heapMib,
    })
    const { attacker, gateway } = stage
    yield* take(stage)
    yield* Effect.sleep(quietSeconds * 1000)
    const quiet = yield* take(stage)
    yield* Effect.promise(() => forgetPeak(gateway.child.pid))
    const { now } = yield* Effect.promise(() => resident(gateway.child.pid))
    const beganMs = performance.now()
    const flood = Effect.scoped(
      Effect.gen(function* () {
        for (const name of conversationAttacks)
          yield* (yield* attackers).ask("start", { name, target: attacker })
        yield* Effect.sleep(seconds * 1000)
      }),
    )
    const died = Effect.match(gateway.child.died, { onFailure: ({ detail }) => detail, onSuccess: () => "" })
    const end = yield* Effect.raceFirst(Effect.as(flood, undefined), died)
    const livedSeconds = (performance.now() - beganMs) / 1000
    const { peak } = yield* Effect.promise(() => resident(gateway.child.pid))
    const during = yield* take(stage)
    const isAlive = end === undefined && (yield* isHealthy(gateway))
    return [
      {
        title: `All attacks on conversations at once, with a heap of ${heapMib} MiB`,
        method:
          `${quietSeconds} s quiet, then ${seconds} s of ${conversationAttacks.length} attackers at the lowest priority; ` +
          `another client's chat every 25 ms on a fake engine${end === undefined ? "" : `; the gateway ended: ${end.slice(-300)}`}`,
        figures: [
          figure("the same process answers /health at the end", "", [isAlive ? 1 : 0], atLeast(1)),
          figure("seconds that it lived", "s", [livedSeconds]),
          figure("resident memory: quiet", "MiB", [now / mib]),
          figure("resident memory: peak", "MiB", [peak / mib]),
          ...besideFloor(
            readingsOf("chat: p99 quiet", "ms", [quiet.chat.p99]),
            readingsOf("chat: p99 meanwhile", "ms", [during.chat.p99]),
            atMost(most.times),
          ),
          figure(
            `chat: requests that failed, of ${during.answered + during.failed}`,
            "",
            [during.failed],
            atMost(0),
          ),
        ],
      },
    ]
  })
