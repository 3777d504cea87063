// The decode loops without a gateway, in a process of their own that stays, so that their code is warm when it is
// measured: node-llama-cpp's own loop, and edgewise's engine alone. Keeps a desk for DecodeRate.
import { Effect } from "effect"
import { keepDesk } from "../support/Desk.ts"
import { bareLoop, type DecodeLoad, type DecodeRate } from "./bareLoop.ts"
import { engineLoop } from "./engineLoop.ts"

export interface Loops {
  readonly load: DecodeLoad
  readonly repeats: number
}

const desk = {
  bare: ({ load, repeats }: Loops): Promise<ReadonlyArray<DecodeRate>> => bareLoop(load, repeats),
  engine: ({ load, repeats }: Loops): Promise<ReadonlyArray<DecodeRate>> =>
    Effect.runPromise(Effect.scoped(engineLoop(load, repeats))),
}

export type LoopsDesk = typeof desk

keepDesk(desk)
