// Whether other programs take the cores of a model's threads. llama.cpp's threads wait for each other by spinning, several hundred times a
// call, so one that the system suspends stops all of them: beside other programs on two cores, two threads gave a seventh of the tokens
// of one (2026-11-27). So a model uses one thread while its calls get less processor time than their threads could use. Pure.

/** Milliseconds of calls after which the processor time is judged. A guess: as for ONNX engines. */
const judgedMs = 500

/** With less than this share of the threads' time, other programs disturb them; as in PickThreads. */
const undisturbed = 0.8

/** Milliseconds on one thread before several are tried again; each failure doubles them, up to the most. Guesses. */
const leastPauseMs = 2_000
const mostPauseMs = 16_000

export class Disturbance {
  readonly #nowMs: () => number
  #ms = 0
  #cpuMs = 0
  #untilMs = 0
  #pauseMs = leastPauseMs

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  /** True while one thread is faster than several. */
  get now(): boolean {
    return this.#nowMs() < this.#untilMs
  }

  /** A call on several threads took `ms`, and the process so much processor time in it. */
  called(threads: number, ms: number, cpuMs: number): void {
    this.#ms += ms
    this.#cpuMs += cpuMs / threads
    if (this.#ms < judgedMs) return
    const share = this.#cpuMs / this.#ms
    this.#ms = 0
    this.#cpuMs = 0
    if (share >= undisturbed) {
      this.#pauseMs = leastPauseMs
      return
    }
    this.#untilMs = this.#nowMs() + this.#pauseMs
    this.#pauseMs = Math.min(mostPauseMs, 2 * this.#pauseMs)
  }
}
