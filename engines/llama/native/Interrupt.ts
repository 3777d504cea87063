// Ends an evaluation early. llama.cpp calls an "abort callback" before each operation of its graph, on the computing thread,
// where JavaScript cannot run. The callback given here is the C library's `strlen` with the address of `flag`: the
// length of an empty text is 0, which is false; that of a text of one character is 1, which is true. One for each
// context. Evaluations on a GPU do not call it and run to their end.
import { addressOf, type Libllama, type Pointer } from "./Libllama.ts"

/** The context keeps it as long as its native side exists, because `strlen` reads it. */
export interface Interrupt {
  readonly callback: Pointer
  readonly data: Pointer
  readonly set: (on: boolean) => void
}

/** `strlen` may read whole vectors beyond the end of the text. */
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
