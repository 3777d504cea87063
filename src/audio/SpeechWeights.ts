// The weights of the voice-activity detector and of the completeness of turns, read once with the program: 130 kB in
// models/turns-demo. A file that is not the released one stops the program, as it would decide badly without an error.
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import {
  type CompletenessWeights,
  completenessWeightsOf,
  type RiseWeights,
  riseWeightsOf,
} from "#domain/activity/Completeness.ts"
import { type SpeechWeights, speechWeightsOf } from "#domain/activity/SpeechNetwork.ts"
import { tensorsOf } from "./Safetensors.ts"

/** SHA-256 of the files, as in models/turns-demo/SHA256SUMS. */
export const speechWeightsSum = "5e01931d6a98f08f53cffd5b1f4b6927d6a0820a71ddfa76a99f6a35e32f4fc5"

export const completenessWeightsSum = "fe969995152dc1911a6574bf195941919054829e429705690bbe7b1d1c35fbeb"

export const riseWeightsSum = "bf4d0f700b4405ec0606fad5d205f92ad64353d936f1aa7895b317610cec95b0"

const read = (name: string, expected: string): ReadonlyMap<string, Float32Array> => {
  const file = new URL(`../../models/turns-demo/${name}.safetensors`, import.meta.url)
  const bytes = readFileSync(file)
  const sum = createHash("sha256").update(bytes).digest("hex")
  if (sum !== expected) {
    throw new Error(`${file.pathname}: SHA-256 ${sum}, expected ${expected}; install edgewise again`)
  }
  return tensorsOf(bytes)
}

export const speechWeights: SpeechWeights = speechWeightsOf(read("activity", speechWeightsSum))
export const completenessWeights: CompletenessWeights = completenessWeightsOf(
  read("completeness", completenessWeightsSum),
)
export const riseWeights: RiseWeights = riseWeightsOf(read("rise", riseWeightsSum))
