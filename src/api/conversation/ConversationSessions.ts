// The conversations of a node: which are admitted, by the measured cost of the three engines that they join. The node's tree shows each
// one. A conversation runs in the fiber of its request, whose scope owns its leases, answers and timers: it cannot be restarted, because
// its socket is gone when it ends.
import { Clock, Context, Effect, Layer, type Scope } from "effect"
import { LiveSessions } from "#actors/live/LiveSessions.ts"
import { CurrentParent, TreeNode } from "#actors/TreeNode.ts"
import { fullShare as liveShare } from "#domain/audio/LivePace.ts"
import {
  ConversationLoad,
  type ConversationParts,
  type ConversationPlace,
} from "#domain/conversation/ConversationLoad.ts"
import { monotonicMs, monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { AtCapacity } from "#domain/wire/Errors.ts"
import { SpeechAdmission } from "#services/SpeechAdmission.ts"

/** When a refused conversation may try again: some end, and some fall silent. A guess. */
const retryAfterMs = 5_000

/** What a conversation reports to the load of its engines. */
export interface ConversationReport {
  /** An answer begins to be given. */
  readonly answers: () => void
  /** An answer has ended, after this much speech was sent. */
  readonly answered: (speechMs: number) => void
  /** The user speaks. */
  readonly hears: () => void
  /** The text engine begins to write; the returned function is called when it has ended. */
  readonly writes: () => () => void
}

export class ConversationSessions extends Context.Service<
  ConversationSessions,
  {
    /** A conversation's place until the scope closes, or a refusal. `asked`: the client's word for it. */
    readonly enter: (
      asked: string,
      parts: ConversationParts,
    ) => Effect.Effect<ConversationReport, AtCapacity, Scope.Scope>
    /** Open conversations, and the share of the machine that those that go on take. */
    readonly gauges: (nowMs: number) => { readonly open: number; readonly share: number }
    readonly forget: (which: (model: string) => boolean) => void
  }
>()("edgewise/api/ConversationSessions") {
  static readonly layer: Layer.Layer<ConversationSessions, never, LiveSessions | SpeechAdmission> =
    Layer.effect(
      ConversationSessions,
      Effect.suspend(() => make),
    )
}

const reportOf = (
  load: ConversationLoad,
  place: ConversationPlace,
  clock: Clock.Clock,
): ConversationReport => ({
  answers: () => load.answers(place, monotonicMsOf(clock)),
  answered: (speechMs) => load.answered(place, monotonicMsOf(clock), speechMs),
  hears: () => {
    place.activeAtMs = monotonicMsOf(clock)
  },
  writes: () => {
    const ended = load.writes(place, monotonicMsOf(clock))
    return () => ended(monotonicMsOf(clock))
  },
})

const make = Effect.gen(function* () {
  const live = yield* LiveSessions
  const speech = yield* SpeechAdmission
  const clock = yield* Clock.Clock
  const parent = yield* CurrentParent
  const load = new ConversationLoad({
    ears: (id) => {
      const fit = live.gauges(monotonicMsOf(clock)).get(id)?.fit
      return fit === undefined ? 0 : liveShare / fit
    },
    voice: (id) => speech.factor(id) ?? 0,
  })
  parent.node.details = { holds: () => ({ sessions: load.size }) }
  return ConversationSessions.of({
    enter: Effect.fnUntraced(function* (asked, parts) {
      const nowMs = yield* monotonicMs
      const node = new TreeNode(`conversation on ${asked}`, "session", nowMs)
      node.state = "running"
      const place = yield* Effect.acquireRelease(
        Effect.suspend(() => {
          const entered = load.enter(parts, nowMs)
          if (entered === undefined) return Effect.fail(new AtCapacity({ model: asked, retryAfterMs }))
          parent.node.add(node)
          return Effect.succeed(entered)
        }),
        (entered) =>
          Effect.sync(() => {
            load.leave(entered)
            parent.node.remove(node)
          }),
      )
      return reportOf(load, place, clock)
    }),
    gauges: (nowMs) => ({ open: load.size, share: load.share(nowMs) }),
    forget: (which) => load.forget(which),
  })
})
