// Fetches pictures that a request names by their address (protocol 7.15).
import { Context, Layer } from "effect"
import { type FetchOptions, makePublicFetch, type PublicFetch } from "#fetch/PublicFetch.ts"

/** Protocol 17.3: what fits in the body of a chat as base64. */
export const maxPictureBytes = 24_000_000

export class PictureUrl extends Context.Service<PictureUrl, { readonly fetch: PublicFetch }>()(
  "edgewise/pictures/PictureUrl",
) {
  static readonly layer = (options: Partial<FetchOptions> = {}) =>
    Layer.sync(PictureUrl, () => ({
      fetch: makePublicFetch({ maxBytes: maxPictureBytes, plainHttp: false, ...options }),
    }))
}
