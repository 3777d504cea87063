// Fetches the reference clips of cloned voices (protocol 8.7).
import { Context, Layer } from "effect"
import { makePublicFetch, type PublicFetch } from "#fetch/PublicFetch.ts"

/** Protocol 8.7. */
const maxBytes = 25 * 1024 * 1024

export class VoiceUrl extends Context.Service<VoiceUrl, { readonly fetch: PublicFetch }>()(
  "edgewise/audio/VoiceUrl",
) {
  static readonly layer = Layer.sync(VoiceUrl, () => ({
    fetch: makePublicFetch({ maxBytes, plainHttp: true }),
  }))
}
