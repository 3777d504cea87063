// The weights of the voice-activity detector, read once with the program: 64 kB in models/turns-demo. A file that is not the
// released one stops the program, as it would decide badly without an error.
import { createHash } from "node:crypto"
import { readFileSync } from "node:fs"
import { type SpeechWeights, speechWeightsOf } from "#domain/activity/SpeechNetwork.ts"
import { tensorsOf } from "./Safetensors.ts"

/** SHA-256 of the file, as in models/turns-demo/SHA256SUMS. */
export const speechWeightsSum = "481773391a9ec709858f660bea3c6dff35c77bfd1660d65fbe8e0cfe88f2b02b"

const file = new URL("../../models/turns-demo/activity.safetensors", import.meta.url)

const read = (): SpeechWeights => {
  const bytes = readFileSync(file)
  const sum = createHash("sha256").update(bytes).digest("hex")
  if (sum !== speechWeightsSum) {
    throw new Error(`${file.pathname}: SHA-256 ${sum}, expected ${speechWeightsSum}; install edgewise again`)
  }
  return speechWeightsOf(tensorsOf(bytes))
}

export const speechWeights = read()
