// Detects that other programs take the cores which spinning threads of ONNX Runtime need. Spinning threads use their
// cores during the whole call, so processor time that a call lacks was used by others. Models of the same node are
// handled by ThreadLimit.

/** Milliseconds of calls in one decision: short work of other programs, such as decoding an upload, is ignored. */
const windowMs = 500

/**
 * Least share of the threads' time that a call gets on free cores. Measured with two threads: 0.92 to 0.99 for Whisper
 * and Kokoro alone, 0.54 to 0.67 beside a program that computes all the time.
 */
const undisturbed = 0.8

/** Milliseconds for which cores count as taken before spinning is tried again. A guess: the trial costs a few percent. */
const holdMs = 2_000

export class CoreContention {
  #ms = 0
  #ownMs = 0
  #untilMs = Number.NEGATIVE_INFINITY

  /** Records one call: its duration, the CPU time of the process meanwhile, its threads, and when it ended. */
  ran(call: { readonly ms: number; readonly cpuMs: number; readonly threads: number }, nowMs: number): void {
    this.#ms += call.ms
    this.#ownMs += call.cpuMs / call.threads
    if (this.#ms < windowMs) return
    if (this.#ownMs < undisturbed * this.#ms) this.#untilMs = nowMs + holdMs
    this.#ms = 0
    this.#ownMs = 0
  }

  taken(nowMs: number): boolean {
    return nowMs < this.#untilMs
  }
}
