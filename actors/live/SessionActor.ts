// A live session's actor: it works at one thing at a time, a caption, a preview or the closing of a piece, as LiveSession says, and ends with
// the final result. Frames are no messages: they go straight into the buffer of LiveSession.
import { Effect, Exit, type Scope } from "effect"
import type { Work } from "#domain/audio/Listening.ts"
import type { FinalResult } from "#domain/audio/LiveTranscript.ts"
import { Message, type Next, spawn } from "../Actor.ts"
import * as Specifications from "../Specifications.ts"
import { CurrentParent, type Parent } from "../TreeNode.ts"

class Begin extends Message<void> {
  readonly _tag = "Begin"
  readonly work: Work
  constructor(work: Work) {
    super()
    this.work = work
  }
}

/** What comes next is sent before the last thing has been left. */
const mailbox = 1

/** Where the session hangs in the node's tree. */
export interface InTree {
  readonly name: string
  readonly parent: Parent
}

const states = {
  close: "closing",
  caption: "captioning",
  preview: "previewing",
  finish: "finishing",
} as const
type SessionState = "waiting" | (typeof states)[Work["do"]]

interface SessionWork<E> {
  /** Gives the final result where that is the work. */
  readonly carryOut: (work: Work) => Effect.Effect<FinalResult | undefined, E>
  readonly memoryBytes: () => number
}

export interface SessionActor<E> {
  /** Nothing else is being worked at, or just ends. */
  readonly begin: (work: Work) => void
  /** The final result, or why there is none. Interrupted where the actor is stopped. */
  readonly result: Effect.Effect<FinalResult, E>
}

/** Starts the actor in the caller's scope, and under `inTree.parent`. */
export const startSession = <E>(
  { carryOut, memoryBytes }: SessionWork<E>,
  inTree: InTree | undefined,
): Effect.Effect<SessionActor<E>, never, Scope.Scope> =>
  Effect.gen(function* () {
    type End = Exit.Exit<FinalResult, E>
    let state: SessionState = "waiting"
    const next = (end?: End): Next<SessionState, void, End> => {
      state = "waiting"
      return { state, reply: undefined, ...(end === undefined ? {} : { end: { value: end } }) }
    }
    const actor = yield* spawn<SessionState, Begin, End>({
      name: inTree?.name ?? "session",
      terms: Specifications.session,
      capacity: mailbox,
      initial: () => Effect.succeed("waiting" as const),
      handle: {
        Begin: (_, { work }) =>
          Effect.suspend(() => {
            state = states[work.do]
            return Effect.match(carryOut(work), {
              onSuccess: (final) => next(final === undefined ? undefined : Exit.succeed(final)),
              onFailure: (error) => next(Exit.fail(error)),
            })
          }),
      },
      details: { state: () => state, holds: () => ({ memoryBytes: memoryBytes() }) },
    }).pipe((starting) =>
      inTree === undefined ? starting : Effect.provideService(starting, CurrentParent, inTree.parent),
    )
    return {
      begin: (work) => void actor.tell(new Begin(work)),
      result: Effect.flatMap(actor.ended, (end) => {
        if (end.reason === "finished") return end.value
        return end.reason === "crashed" ? Effect.failCause(end.cause) : Effect.interrupt
      }),
    }
  })
