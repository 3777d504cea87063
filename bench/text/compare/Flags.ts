// The flags of the comparisons with llama-server. Ends the process with a line of usage if they are wrong.
import { availableParallelism } from "node:os"
import { parseArgs } from "node:util"
import { textSizes } from "../../sizes/text/TextWeights.ts"

export const readFlags = (defaults: { readonly size: string; readonly rounds: string }) => {
  const { values: flags } = parseArgs({
    options: {
      server: { type: "string" },
      size: { type: "string", default: defaults.size },
      threads: { type: "string", default: String(availableParallelism()) },
      rounds: { type: "string", default: defaults.rounds },
      streams: { type: "string", default: "1,4,8,16" },
      beside: { type: "string", default: "0" },
      "pulse-ms": { type: "string" },
    },
  })
  const size = textSizes.find((name) => name === flags.size)
  const { server } = flags
  if (server === undefined || size === undefined) {
    console.error(
      `--server <llama-server> [--size ${textSizes.join("|")}] [--threads n] [--rounds n] [--streams n,n] [--beside n] [--pulse-ms n]`,
    )
    process.exit(2)
  }
  const pulse = flags["pulse-ms"]
  return {
    server,
    size,
    threads: Number(flags.threads),
    rounds: Number(flags.rounds),
    streamCounts: flags.streams.split(",").map(Number),
    neighbours: Number(flags.beside),
    pulseMs: pulse === undefined ? undefined : Number(pulse),
  }
}
