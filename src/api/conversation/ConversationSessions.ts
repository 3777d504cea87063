// The conversations of a node: which are admitted, by the measured cost of the three engines that they join. Each is a child of the
// node's tree, whose scope owns its leases, its socket, its answers and timers. It has no mailbox besides its socket. A defect ends it
// alone; it is not restarted, because its socket is gone when it ends.
import { Cause, Clock, Context, Effect, Layer, type Scope } from "effect"
import { startChild } from "#actors/Child.ts"
import { LiveSessions } from "#actors/live/LiveSessions.ts"
import * as Specifications from "#actors/Specifications.ts"
import { CurrentParent } from "#actors/TreeNode.ts"
import { ReadAhead, type Reading } from "#domain/access/ReadAhead.ts"
import { fullShare as liveShare } from "#domain/audio/LivePace.ts"
import {
  ConversationLoad,
  type ConversationParts,
  type ConversationPlace,
} from "#domain/conversation/ConversationLoad.ts"
import { monotonicMs, monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { AtCapacity } from "#domain/wire/Errors.ts"
import { reportFailure } from "#services/AnswerFailures.ts"
import { SpeechAdmission } from "#services/SpeechAdmission.ts"
import type { Principal } from "#store/accounts/Accounts.ts"

/** When a refused conversation may try again: some end, and some fall silent. A guess. */
const retryAfterMs = 5_000

/** What a conversation reports to the load of its engines, and to the allowance of what is read ahead for its user. */
export interface ConversationReport {
  /** A prompt of about so many characters is read ahead; undefined where the user may not have more. */
  readonly readsAhead: (characters: number) => Reading | undefined
  /** An answer begins to be given. */
  readonly answers: () => void
  /** An answer has ended, after this much speech was sent, to a prompt of which so many tokens were charged. */
  readonly answered: (speechMs: number, promptTokens: number) => void
  /** The user speaks. */
  readonly hears: () => void
  /** The text engine begins to write; the returned function is called when it has ended. */
  readonly writes: () => () => void
}

export interface ConversationGauges {
  /** Open conversations. */
  readonly open: number
  /** Share of the machine that they take. */
  readonly share: number
  /** Conversations that a defect has ended so far. */
  readonly crashed: number
}

export class ConversationSessions extends Context.Service<
  ConversationSessions,
  {
    /** A conversation's place until the scope closes, or a refusal. `asked`: the client's word for it. */
    readonly enter: (
      asked: string,
      parts: ConversationParts,
      caller: Pick<Principal, "orgId" | "userId">,
    ) => Effect.Effect<ConversationReport, AtCapacity, Scope.Scope>
    /**
     * Runs a conversation as a child, which ends with the scope. `asked`: the client's word for it. A refusal is an end like any other;
     * a defect is a crash, which is counted and reported.
     */
    readonly run: <A, E, R>(
      asked: string,
      conversation: Effect.Effect<A, E, R>,
    ) => Effect.Effect<A, E, Exclude<R, Scope.Scope> | Scope.Scope>
    readonly gauges: (nowMs: number) => ConversationGauges
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
  readAhead: ReadAhead,
  userId: string,
): ConversationReport => ({
  readsAhead: (characters) => readAhead.begin(userId, characters),
  answers: () => load.answers(place, monotonicMsOf(clock)),
  answered: (speechMs, promptTokens) => {
    load.answered(place, monotonicMsOf(clock), speechMs)
    if (promptTokens > 0) readAhead.answered(userId, promptTokens)
  },
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
  const readAhead = new ReadAhead(() => monotonicMsOf(clock))
  let crashed = 0
  parent.node.details = { holds: () => ({ sessions: load.size }) }
  return ConversationSessions.of({
    enter: Effect.fnUntraced(function* (asked, parts, { orgId, userId }) {
      const nowMs = yield* monotonicMs
      const place = yield* Effect.acquireRelease(
        Effect.suspend(() => {
          const entered = load.enter(parts, orgId, nowMs)
          return entered === undefined
            ? Effect.fail(new AtCapacity({ model: asked, retryAfterMs }))
            : Effect.succeed(entered)
        }),
        (entered) => Effect.sync(() => load.leave(entered)),
      )
      return reportOf(load, place, clock, readAhead, userId)
    }),
    run: <A, E, R>(asked: string, conversation: Effect.Effect<A, E, R>) =>
      Effect.gen(function* () {
        const child = yield* startChild({
          ...Specifications.conversation,
          name: `conversation on ${asked}`,
          run: ({ ready }) => Effect.andThen(Effect.sync(ready), Effect.result(conversation)),
        }).pipe(Effect.provideService(CurrentParent, parent))
        const end = yield* child.ended
        if (end.reason === "finished") return yield* Effect.fromResult<A, E>(end.value)
        if (end.reason === "stopped") return yield* Effect.interrupt
        crashed++
        yield* reportFailure(end.cause, "/v1/realtime")
        return yield* Effect.die(Cause.squash(end.cause))
      }),
    gauges: (nowMs) => ({ open: load.size, share: load.share(nowMs), crashed }),
    forget: (which) => load.forget(which),
  })
})
