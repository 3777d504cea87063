// An actor: a bounded mailbox, one message at a time, a state of its own that others may read. It is a child like any other
// (Child.ts), so everything that it acquires belongs to its Scope, and a crash is answered by a restart.
// An expected failure is a reply. A defect ends the incarnation and is the reply to the message that caused it; the next
// incarnation begins with the initial state and the messages that still wait. A full mailbox is an answer too.
// For control, not for data: tokens and audio frames are function calls (docs/architecture.md).
import { Cause, Deferred, Effect, Exit, Queue, Schema, type Scope } from "effect"
import { type Child, type ChildTerms, startChild } from "./Child.ts"
import type { Details } from "./TreeNode.ts"

class ActorStopped extends Schema.TaggedError<ActorStopped>()("ActorStopped", {
  actor: Schema.String,
}) {}
class MailboxFull extends Schema.TaggedError<MailboxFull>()("MailboxFull", { actor: Schema.String }) {}

/** The actor itself could not be reached; not one of the failures that its messages name. */
type NoReply = ActorStopped | MailboxFull

/** A message class carries the types of its reply and of its expected failure. */
export abstract class Message<out A, out E = never> {
  declare readonly "~reply": A
  declare readonly "~failure": E
  abstract readonly _tag: string
}
type AnyMessage = Message<unknown, unknown>
type ReplyOf<M> = M extends { readonly "~reply": infer A } ? A : never
type FailureOf<M> = M extends { readonly "~failure": infer E } ? E : never

/** What a handler makes of one message: the next state and the reply, and with `end` the last words of the actor. */
export interface Next<S, Reply, End> {
  readonly state: S
  readonly reply: Reply
  /** Present where the actor ends with this message. */
  readonly end?: { readonly value: End }
}

/** One handler for each type of message. */
type Handlers<S, M extends AnyMessage, End> = {
  readonly [Tag in M["_tag"]]: (
    state: S,
    message: Extract<M, { readonly _tag: Tag }>,
  ) => Effect.Effect<
    Next<S, ReplyOf<Extract<M, { readonly _tag: Tag }>>, End>,
    FailureOf<Extract<M, { readonly _tag: Tag }>>
  >
}

interface ActorSpec<S, M extends AnyMessage, End = never> {
  readonly name: string
  readonly terms: ChildTerms
  /** Messages that may wait. */
  readonly capacity: number
  /** Runs at every start and restart, inside the incarnation's scope. `before` is the state before the crash, undefined at the start. */
  readonly initial: (before: S | undefined) => Effect.Effect<S, never, Scope.Scope>
  readonly handle: Handlers<S, M, End>
  /** What the tree shows of it. */
  readonly details?: Omit<Details, "mailbox">
}

export interface ActorRef<S, M extends AnyMessage, End = never> extends Child<End, never> {
  readonly name: string
  /** Sends and waits for the reply. A full mailbox refuses. */
  readonly ask: <N extends M>(message: N) => Effect.Effect<ReplyOf<N>, FailureOf<N> | NoReply>
  /** As `ask`, for a message that must not be lost: it waits for room in the mailbox. */
  readonly deliver: <N extends M>(message: N) => Effect.Effect<ReplyOf<N>, FailureOf<N> | ActorStopped>
  /** Sends without waiting; false when the mailbox is full or the actor has ended. */
  readonly tell: (message: M) => boolean
  /** The state after the last message; undefined before it has started. */
  readonly state: () => S | undefined
}

type AnyHandler<S, End> = (state: S, message: AnyMessage) => Effect.Effect<Next<S, unknown, End>, unknown>

interface Envelope {
  readonly message: AnyMessage
  readonly reply: Deferred.Deferred<unknown, unknown> | undefined
}

/** Starts an actor under the current parent, in the caller's scope. */
export const spawn = <S, M extends AnyMessage, End = never>(
  spec: ActorSpec<S, M, End>,
): Effect.Effect<ActorRef<S, M, End>, never, Scope.Scope> =>
  Effect.gen(function* () {
    const { capacity, details, name } = spec
    const mailbox = yield* Queue.bounded<Envelope>(capacity)
    let state: S | undefined
    let hasEnded = false
    let inFlight: Envelope | undefined

    const answer = (envelope: Envelope | undefined, exit: Exit.Exit<unknown, unknown>) => {
      if (envelope?.reply !== undefined) Deferred.doneUnsafe(envelope.reply, exit)
    }
    // `ask` and `tell` take messages of M only, and the table has the handler of every tag of M.
    const handlers = spec.handle as unknown as Readonly<Record<string, AnyHandler<S, End>>>

    // Every message has its answer, however the actor ends.
    const close = Effect.sync(() => {
      hasEnded = true
      const gone = Exit.fail(new ActorStopped({ actor: name }))
      answer(inFlight, gone)
      for (let next = Queue.takeUnsafe(mailbox); next !== undefined; next = Queue.takeUnsafe(mailbox))
        if (Exit.isSuccess(next)) answer(next.value, gone)
    })

    const child = yield* startChild<End, never, never>({
      ...spec.terms,
      name,
      onEnd: () => close,
      run: (self) =>
        Effect.gen(function* () {
          self.node.details = { ...details, mailbox: () => ({ depth: depth(), bound: capacity }) }
          let current = yield* spec.initial(state)
          state = current
          self.ready()
          for (;;) {
            const envelope = yield* Queue.take(mailbox)
            inFlight = envelope
            const exit = yield* Effect.exit(
              Effect.suspend(() => handlers[envelope.message._tag]!(current, envelope.message)),
            )
            inFlight = undefined
            // Published before the reply: who has asked sees what has become of it.
            if (Exit.isSuccess(exit)) state = current = exit.value.state
            const end = Exit.isSuccess(exit) ? exit.value.end : undefined
            hasEnded = end !== undefined
            answer(
              envelope,
              Exit.map(exit, ({ reply }) => reply),
            )
            if (end !== undefined) return end.value
            if (Exit.isFailure(exit) && Cause.hasDies(exit.cause))
              return yield* Effect.die(Cause.squash(exit.cause))
          }
        }),
    })
    const depth = () => Queue.sizeUnsafe(mailbox)
    const offer = (envelope: Envelope): boolean => !hasEnded && Queue.offerUnsafe(mailbox, envelope)

    const sent = <N extends M, Full>(
      message: N,
      send: (envelope: Envelope) => Effect.Effect<boolean>,
      full: Full,
    ): Effect.Effect<ReplyOf<N>, FailureOf<N> | ActorStopped | Full> =>
      Effect.suspend((): Effect.Effect<ReplyOf<N>, FailureOf<N> | ActorStopped | Full> => {
        if (hasEnded) return Effect.fail(new ActorStopped({ actor: name }))
        const reply = Deferred.makeUnsafe<ReplyOf<N>, FailureOf<N> | ActorStopped>()
        return Effect.flatMap(
          send({ message, reply: reply as Deferred.Deferred<unknown, unknown> }),
          (taken): Effect.Effect<ReplyOf<N>, FailureOf<N> | ActorStopped | Full> =>
            taken ? Deferred.await(reply) : Effect.fail(full),
        )
      })

    return {
      ...child,
      name,
      state: () => state,
      tell: (message) => offer({ message, reply: undefined }),
      ask: (message) =>
        sent(
          message,
          (envelope) => Effect.sync(() => Queue.offerUnsafe(mailbox, envelope)),
          new MailboxFull({ actor: name }),
        ),
      deliver: (message) =>
        // Where it waits for room, the actor may end meanwhile.
        sent(message, (envelope) => Queue.offer(mailbox, envelope), new ActorStopped({ actor: name })),
    } satisfies ActorRef<S, M, End>
  })
