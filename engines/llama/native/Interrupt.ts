// Ends an evaluation early. llama.cpp asks an "abort callback" before each operation of its graph, on the thread that computes,
// where no JavaScript can run. The callback given here is the C library's `strlen`, called with the address of `flag`: the
// length of an empty text is 0, which is false, and that of a text of one character is 1, which is true. Made by
// OpenLibllama for each context. Evaluations on a GPU are not asked and run to their end.
import { addressOf, type Libllama, type Pointer } from "./Libllama.ts"

/** Kept by the context for as long as its native side exists: `strlen` reads it. */
export interface Interrupt {
  readonly callback: Pointer
  readonly data: Pointer
  readonly set: (on: boolean) => void
}

/** `strlen` may read whole vectors beside the text. */
const flagBytes = 64

export const makeInterrupt = ({ stringLength }: Pick<Libllama, "stringLength">): Interrupt => {
  const flag = new Uint8Array(new ArrayBuffer(flagBytes))
  return {
    callback: stringLength,
    data: addressOf(flag.buffer),
    set: (on) => {
      flag[0] = on ? 1 : 0
    },
  }
}
