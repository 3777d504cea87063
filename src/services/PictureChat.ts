// A chat with pictures: its money is reserved before anything is fetched or decoded, because both cost the node something.
import { Effect } from "effect"
import type { ModelHandle } from "#actors/model/ModelHandle.ts"
import { seesPictures } from "#domain/models/ModelEntry.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import type { RequestedPicture } from "#domain/wire/text/Pictures.ts"
import type { GenerateRequest } from "#engines/protocol/Text.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import { type BeginTerms, begin, type Delivery, generationAtMost } from "./Generation.ts"
import { reserveFor } from "./ModelRun.ts"
import { decodedPictures, requirePictureDecoder } from "./Pictures.ts"

/** What the engine says, or the catalog before it has loaded. */
export const takesPictures = (model: ModelHandle<"text">): boolean => seesPictures(model.entry, model.facts())

/** Starts a generation from a request without its pictures and from these. */
export const beginWithPictures = Effect.fnUntraced(function* (
  caller: Principal,
  model: ModelHandle<"text">,
  request: GenerateRequest,
  requested: ReadonlyArray<RequestedPicture>,
  delivery: Delivery,
  terms?: Pick<BeginTerms, "chargedIf">,
) {
  const { pictures: sight } = yield* model.loaded
  const [first] = requested
  if (sight === undefined && first !== undefined) {
    return yield* new InvalidRequest({
      field: first.field,
      problem: `only text is supported by ${model.entry.id}`,
    })
  }
  yield* requirePictureDecoder(model.entry.id)
  const atMost = generationAtMost(model, request, requested.length)
  const reservation = yield* reserveFor(caller, model.entry, atMost)
  const pictures = yield* decodedPictures(requested, {
    model: model.entry.id,
    user: caller.userId,
    maxPixels: sight?.maxPixels ?? 1,
  })
  return yield* begin(caller, model, { ...request, pictures }, delivery, { ...terms, reservation })
})
