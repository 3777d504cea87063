// The decode loops without a gateway: node-llama-cpp's own loop, and edgewise's engine alone. One lasting process, so that
// their code is warm when it is measured.
import { Effect } from "effect"
import { serveCommands } from "../support/CommandChannel.ts"
import { bareLoop, type DecodeLoad, type DecodeRate } from "./bareLoop.ts"
import { engineLoop } from "./engineLoop.ts"

interface Loops {
  readonly load: DecodeLoad
  readonly repeats: number
}

const commands = {
  bare: ({ load, repeats }: Loops): Promise<ReadonlyArray<DecodeRate>> => bareLoop(load, repeats),
  engine: ({ load, repeats }: Loops): Promise<ReadonlyArray<DecodeRate>> =>
    Effect.runPromise(Effect.scoped(engineLoop(load, repeats))),
}

export type LoopsCommands = typeof commands

serveCommands(commands)
