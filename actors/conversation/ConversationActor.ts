// The actor of a conversation: one event at a time, what TurnTaking decides of it, and its commands in their order before the next event.
// Audio and text are no events: they go straight from the engines to the socket.
import { Cause, Deferred, Effect, type Scope } from "effect"
import {
  type Command,
  decide,
  type Event,
  type Facts,
  type Rules,
  type State,
  silent,
} from "#domain/conversation/TurnTaking.ts"
import { Message, spawn } from "../Actor.ts"
import * as Specifications from "../Specifications.ts"

class Happened<G, E, X> extends Message<void, X> {
  readonly _tag = "Happened"
  readonly event: Event<G, E>
  constructor(event: Event<G, E>) {
    super()
    this.event = event
  }
}

/**
 * Events that may wait. A guess: a conversation has at most 17 turns without a transcript, each of which has four events; and a client's
 * event waits until it is carried out.
 */
const mailbox = 128

/** Events that say what may be: without them an answer begins later, and nothing else. */
const hints = new Set<Event<never, never>["is"]>(["words last", "foreseen"])
/** So many events may wait where a hint is still taken. */
const mostBeforeHint = 32

interface ConversationWork<G, E, X> {
  readonly facts: (state: State<G>) => Facts<E>
  /** Carries a command out; gives what has become of it, where that is an event. */
  readonly carryOut: (command: Command<G, E>) => Effect.Effect<Event<G, E> | undefined, X>
}

export interface ConversationActor<G, E, X> {
  /** Tells it of an event. */
  readonly tell: (event: Event<G, E>) => void
  /** Tells it of an event, and waits until its commands are carried out. */
  readonly settle: (event: Event<G, E>) => Effect.Effect<void, X>
  readonly state: () => State<G>
  /** Fails with its defect. */
  readonly crashed: Effect.Effect<never>
}

/** Starts the actor in the caller's scope. */
export const startConversation = <G, E, X>(
  rules: Rules,
  work: ConversationWork<G, E, X>,
): Effect.Effect<ConversationActor<G, E, X>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const first = silent<G>(rules)
    let waiting = 0
    const overflowed = Deferred.makeUnsafe<never>()
    const actor = yield* spawn<State<G>, Happened<G, E, X>>({
      name: "turn taking",
      terms: Specifications.conversation,
      capacity: mailbox,
      initial: () => Effect.succeed(first),
      handle: {
        Happened: (before, { event }) =>
          Effect.gen(function* () {
            waiting--
            let state = before
            const events = [event]
            for (let next = events.shift(); next !== undefined; next = events.shift()) {
              const [after, commands] = decide(state, next, work.facts(state))
              state = after
              for (const command of commands) {
                const became = yield* work.carryOut(command)
                if (became !== undefined) events.push(became)
              }
            }
            return { state, reply: undefined }
          }),
      },
    })
    return {
      tell: (event) => {
        if (hints.has(event.is) && waiting >= mostBeforeHint) return
        if (actor.tell(new Happened<G, E, X>(event))) waiting++
        else Deferred.doneUnsafe(overflowed, Effect.die(new Error(`no room for the event "${event.is}"`)))
      },
      settle: (event) =>
        Effect.suspend(() => {
          waiting++
          return actor.ask(new Happened<G, E, X>(event))
        }).pipe(
          // It ends with the conversation, whose socket is gone then.
          Effect.catchTag("ActorStopped", () => Effect.interrupt),
          Effect.catchTag("MailboxFull", (error) => Effect.die(error)),
        ),
      state: () => actor.state() ?? first,
      crashed: Effect.raceFirst(
        Deferred.await(overflowed),
        Effect.flatMap(actor.ended, (end) =>
          end.reason === "crashed" ? Effect.die(Cause.squash(end.cause)) : Effect.never,
        ),
      ),
    }
  })
