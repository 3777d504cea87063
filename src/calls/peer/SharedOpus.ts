// The wasm instance of all codecs of the process of calls: one for each call would reserve more memory than the process may have.
import { opusModule } from "#audio/codecs/OpusCodec.ts"

export const sharedOpus = opusModule()
