// A live session's actor: it makes captions when they are due and the final result at the end, one at a time, and ends with it.
// Frames are no messages: they go straight into the buffer of LiveSession, which sends a message when a window is full.
import { Effect, Exit, type Scope } from "effect"
import type { FinalResult } from "#domain/audio/LiveTranscript.ts"
import { Message, type Next, spawn } from "../Actor.ts"
import * as Specifications from "../Specifications.ts"
import { CurrentParent, type Parent } from "../TreeNode.ts"

/** The end of a window has come: make a caption. */
class Caption extends Message<void> {
  readonly _tag = "Caption"
}
/** The audio may be complete: make the result that would be final now. */
class Preview extends Message<void> {
  readonly _tag = "Preview"
}
/** No audio follows: make the final result. */
class Finish extends Message<void> {
  readonly _tag = "Finish"
}

/** One caption that is due, one preview, and the end. */
const mailbox = 3

/** Where the session hangs in the node's tree. */
export interface InTree {
  readonly name: string
  readonly parent: Parent
}

type SessionState = "waiting" | "captioning" | "previewing" | "finishing"

export interface SessionWork<E> {
  readonly caption: Effect.Effect<void, E>
  readonly preview: Effect.Effect<void, E>
  readonly finish: Effect.Effect<FinalResult, E>
  readonly memoryBytes: () => number
}

export interface SessionActor<E> {
  readonly captionIsDue: () => void
  readonly previewIsDue: () => void
  readonly audioHasEnded: () => void
  /** The final result, or why there is none. Interrupted where the actor is stopped. */
  readonly result: Effect.Effect<FinalResult, E>
}

/** Starts the actor in the caller's scope, and under `inTree.parent`. */
export const startSession = <E>(
  work: SessionWork<E>,
  inTree: InTree | undefined,
): Effect.Effect<SessionActor<E>, never, Scope.Scope> =>
  Effect.gen(function* () {
    type End = Exit.Exit<FinalResult, E>
    let state: SessionState = "waiting"
    const next = (end?: End): Next<SessionState, void, End> => {
      state = "waiting"
      return { state, reply: undefined, ...(end === undefined ? {} : { end: { value: end } }) }
    }
    const during = <A>(now: SessionState, effect: Effect.Effect<A, E>) =>
      Effect.suspend(() => {
        state = now
        return effect
      })
    const actor = yield* spawn<SessionState, Caption | Preview | Finish, End>({
      name: inTree?.name ?? "session",
      terms: Specifications.session,
      capacity: mailbox,
      initial: () => Effect.succeed("waiting" as const),
      handle: {
        Caption: () =>
          Effect.match(during("captioning", work.caption), {
            onSuccess: () => next(),
            onFailure: (error) => next(Exit.fail(error)),
          }),
        Preview: () =>
          Effect.match(during("previewing", work.preview), {
            onSuccess: () => next(),
            onFailure: (error) => next(Exit.fail(error)),
          }),
        Finish: () =>
          Effect.match(during("finishing", work.finish), {
            onSuccess: (final) => next(Exit.succeed(final)),
            onFailure: (error) => next(Exit.fail(error)),
          }),
      },
      details: { state: () => state, holds: () => ({ memoryBytes: work.memoryBytes() }) },
    }).pipe((starting) =>
      inTree === undefined ? starting : Effect.provideService(starting, CurrentParent, inTree.parent),
    )
    return {
      captionIsDue: () => void actor.tell(new Caption()),
      previewIsDue: () => void actor.tell(new Preview()),
      audioHasEnded: () => void actor.tell(new Finish()),
      result: Effect.flatMap(actor.ended, (end) => {
        if (end.reason === "finished") return end.value
        return end.reason === "crashed" ? Effect.failCause(end.cause) : Effect.interrupt
      }),
    }
  })
