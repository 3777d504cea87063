// Decodes a picture in a decoder process: one question, one answer.
import { Effect, type Scope } from "effect"
import type { DecodedPicture, PictureRequest } from "#domain/pictures/PictureRequest.ts"
import type { Place } from "#domain/queues/FairQueue.ts"
import { AudioRejected, DecoderFailed } from "./AudioErrors.ts"
import type { Ask, Lease } from "./DecoderPool.ts"
import type { DecoderEvent } from "./DecoderProcess.ts"
import type { DecoderProgram } from "./decoder/DecoderWire.ts"

type Outcome = Effect.Effect<DecodedPicture, AudioRejected | DecoderFailed>

const failed = (reason: DecoderFailed["reason"], detail: string): Outcome =>
  Effect.fail(new DecoderFailed({ reason, detail }))

const outcomeOf = (event: DecoderEvent): Outcome => {
  switch (event.t) {
    case "picture":
      return Effect.succeed(event.picture)
    case "rejected":
      return Effect.fail(new AudioRejected({ reason: event.reason, detail: event.detail }))
    case "unwritable":
      return failed("Spool", `pixels could not be stored: ${event.code}`)
    case "died":
      return failed("Died", `the decoder failed: ${event.detail}`)
    default:
      return failed("Protocol", "the decoder sent sound for a picture")
  }
}

/** Fails with `Absent` if the program of the processes decodes no pictures. */
export const picturesWith = ({ kind }: DecoderProgram): Effect.Effect<void, DecoderFailed> =>
  kind === "node-av"
    ? Effect.void
    : Effect.fail(
        new DecoderFailed({ reason: "Absent", detail: "pictures are decoded only by the package node-av" }),
      )

/** @param hangMs silence after which the process is ended */
export const makePictureDecoder =
  (borrow: (ask: Ask) => Effect.Effect<Lease, DecoderFailed, Scope.Scope>, hangMs: number) =>
  (request: PictureRequest, place: Partial<Place> = {}): Outcome =>
    Effect.scoped(
      Effect.gen(function* () {
        const { process } = yield* borrow({ user: "", urgency: "interactive", continues: false, ...place })
        return yield* Effect.callback<DecodedPicture, AudioRejected | DecoderFailed>((resume) => {
          process.decodePicture(request, (event) => resume(outcomeOf(event)))
        }).pipe(
          Effect.timeoutOrElse({
            duration: hangMs,
            orElse: () => failed("Hung", `the decoder was silent for ${hangMs} ms`),
          }),
        )
      }),
    )
