// The primitive under every actor: a bounded mailbox, one message at a time, typed replies.
// An expected failure is a reply; a defect ends the incarnation ("let it crash") and its supervisor starts a new one
// with the initial state. A full mailbox is an answer too (MailboxFull), never a queue without bound.
import { Cause, Deferred, Effect, Exit, Queue, Schema, type Scope } from "effect"
import { type RestartIntensityExceeded, type RestartPolicy, supervise } from "./Supervisor.ts"

export class ActorStopped extends Schema.TaggedError<ActorStopped>()("ActorStopped", {
  actor: Schema.String,
}) {}
export class MailboxFull extends Schema.TaggedError<MailboxFull>()("MailboxFull", { actor: Schema.String }) {}

/** A message class carries the types of its reply and of its expected failure. */
export abstract class Message<out A, out E = never> {
  declare readonly "~reply": A
  declare readonly "~failure": E
}
type Any = Message<unknown, unknown>
type ReplyOf<M> = M extends { readonly "~reply": infer A } ? A : never
type FailureOf<M> = M extends { readonly "~failure": infer E } ? E : never

export interface ActorRef<M extends Any> {
  readonly name: string
  /** Sends and waits for the reply. */
  readonly ask: <N extends M>(
    message: N,
  ) => Effect.Effect<ReplyOf<N>, FailureOf<N> | ActorStopped | MailboxFull>
  /** Sends without waiting; false when the mailbox is full or the actor has stopped. */
  readonly tell: (message: M) => boolean
  readonly depth: () => number
}

/** How an actor answers: the new state and the reply, given the state and one message. */
export type Handler<S, M> = (
  state: S,
  message: M,
) => Effect.Effect<readonly [state: S, reply: unknown], unknown>

export interface ActorSpec<S, M extends Any> {
  readonly name: string
  /** Messages that may wait. */
  readonly capacity: number
  readonly restart: RestartPolicy
  /** Runs at every (re)start, inside the incarnation's scope. */
  readonly initial: Effect.Effect<S, never, Scope.Scope>
  readonly handle: Handler<S, M>
  readonly onRestart?: (cause: Cause.Cause<unknown>) => Effect.Effect<void>
}

interface Envelope {
  readonly message: Any
  readonly reply: Deferred.Deferred<unknown, unknown> | undefined
}

/** Starts the actor in the caller's scope; closing the scope fails what is in flight with ActorStopped. */
export const spawn = <S, M extends Any>(
  spec: ActorSpec<S, M>,
): Effect.Effect<ActorRef<M>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const mailbox = yield* Queue.dropping<Envelope>(spec.capacity)
    let stopped = false
    let inFlight: Envelope | undefined

    const answer = (envelope: Envelope, exit: Exit.Exit<unknown, unknown>) => {
      if (envelope.reply !== undefined) Deferred.doneUnsafe(envelope.reply, exit)
    }

    const incarnation = Effect.scoped(
      Effect.gen(function* () {
        let state = yield* spec.initial
        for (;;) {
          const envelope = yield* Queue.take(mailbox)
          inFlight = envelope
          const exit = yield* Effect.exit(spec.handle(state, envelope.message as M))
          inFlight = undefined
          answer(
            envelope,
            Exit.map(exit, ([, reply]) => reply),
          )
          if (Exit.isSuccess(exit)) state = exit.value[0]
          else if (Cause.hasDies(exit.cause)) return yield* Effect.failCause(exit.cause)
        }
      }),
    )

    const stop = Effect.suspend(() => {
      stopped = true
      const gone = Exit.fail(new ActorStopped({ actor: spec.name }))
      if (inFlight !== undefined) answer(inFlight, gone)
      return Effect.flatMap(
        Queue.sizeUnsafe(mailbox) > 0 ? Queue.clear(mailbox) : Effect.succeed([]),
        (waiting) => {
          for (const envelope of waiting) answer(envelope, gone)
          return Queue.shutdown(mailbox)
        },
      )
    })

    yield* incarnation.pipe(
      supervise(spec.name, spec.restart, (cause) => spec.onRestart?.(cause) ?? Effect.void),
      Effect.ensuring(stop),
      Effect.catchTag("RestartIntensityExceeded", (error: RestartIntensityExceeded) =>
        Effect.logError("actor gave up").pipe(
          Effect.annotateLogs({ actor: error.child, restarts: error.restarts }),
        ),
      ),
      Effect.forkScoped,
    )

    const offer = (envelope: Envelope): boolean => !stopped && Queue.offerUnsafe(mailbox, envelope)

    return {
      name: spec.name,
      depth: () => Queue.sizeUnsafe(mailbox),
      tell: (message) => offer({ message, reply: undefined }),
      ask: <N extends M>(message: N) =>
        Effect.suspend((): Effect.Effect<ReplyOf<N>, FailureOf<N> | ActorStopped | MailboxFull> => {
          if (stopped) return Effect.fail(new ActorStopped({ actor: spec.name }))
          const reply = Deferred.makeUnsafe<ReplyOf<N>, FailureOf<N>>()
          const sent = offer({ message, reply: reply as Deferred.Deferred<unknown, unknown> })
          return sent ? Deferred.await(reply) : Effect.fail(new MailboxFull({ actor: spec.name }))
        }),
    } satisfies ActorRef<M>
  })
