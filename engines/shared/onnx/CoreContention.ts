// Whether other programs take the cores that spinning threads of ONNX Runtime need. Threads that spin use their cores for
// the whole of a call, so processor time that a call lacks went to others. Fed by OnnxSession with its calls on spinning
// sessions; models of the same node are not its subject, see ThreadLimit.

/** Calls of so much time together decide: shorter work of others, such as the decoding of an upload, is no reason. ms. */
const windowMs = 500

/**
 * Part of the threads' time that calls have on free cores at least. Measured with two threads: 0.92 to 0.99 for Whisper
 * and Kokoro alone, 0.54 to 0.67 beside a program that computes all the time.
 */
const undisturbed = 0.8

/** How long cores count as taken before spinning is tried again, ms. A guess: the trial costs a few percent. */
const holdMs = 2_000

export class CoreContention {
  private ms = 0
  private ownMs = 0
  private untilMs = Number.NEGATIVE_INFINITY

  /** One call: its time, the processor time of the whole process meanwhile, its threads, and when it ended. */
  ran(call: { readonly ms: number; readonly cpuMs: number; readonly threads: number }, nowMs: number): void {
    this.ms += call.ms
    this.ownMs += call.cpuMs / call.threads
    if (this.ms < windowMs) return
    if (this.ownMs < undisturbed * this.ms) this.untilMs = nowMs + holdMs
    this.ms = 0
    this.ownMs = 0
  }

  taken(nowMs: number): boolean {
    return nowMs < this.untilMs
  }
}
