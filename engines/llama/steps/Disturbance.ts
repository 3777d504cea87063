// Whether other programs take the cores of a model's threads. llama.cpp's threads wait for each other by spinning, several hundred times a
// call, so one that the system suspends stops all of them: beside other programs on two cores, two threads gave a seventh of the tokens
// of one (2026-11-27). So a model goes on with as many threads as got a core of their own while its calls get less processor time than
// their threads could use. Pure.

/** Milliseconds of calls after which the processor time is judged. A guess: as for ONNX engines. */
const judgedMs = 500

/** The same when all threads are tried again: calls that are disturbed take several times as long. A guess. */
const triedMs = 150

/** With less than this share of the threads' time, other programs disturb them; as in PickThreads. */
const undisturbed = 0.8

/** Milliseconds on fewer threads before all are tried again: while the disturbance is new, and later. Guesses. */
const pauseMs = { soon: 1_000, later: 4_000 }
/** Milliseconds for which a disturbance is new. A guess: other programs often compute for seconds only. */
const newForMs = 10_000

export class Disturbance {
  readonly #nowMs: () => number
  #ms = 0
  #cpuMs = 0
  /** What all threads could use. */
  #possibleMs = 0
  #untilMs = 0
  /** When the disturbance began; undefined while there is none. */
  #sinceMs: number | undefined
  #most = 1
  /** True from the first disturbed calls until a trial of all threads has gone well. */
  #trying = false

  constructor(nowMs: () => number = () => performance.now()) {
    this.#nowMs = nowMs
  }

  get #lasts(): boolean {
    return this.#nowMs() < this.#untilMs
  }

  /** Of so many threads, how many are fastest now. */
  threads(wanted: number): number {
    return this.#lasts ? Math.min(wanted, this.#most) : wanted
  }

  /** A call on several threads took `ms`, and the process so much processor time in it. */
  called(threads: number, ms: number, cpuMs: number): void {
    this.#ms += ms
    this.#cpuMs += cpuMs
    this.#possibleMs += threads * ms
    if (this.#ms < (this.#trying ? triedMs : judgedMs)) return
    const cores = this.#cpuMs / this.#ms
    const share = this.#cpuMs / this.#possibleMs
    this.#ms = 0
    this.#cpuMs = 0
    this.#possibleMs = 0
    if (share >= undisturbed) {
      // Fewer threads that are undisturbed say nothing about all of them.
      if (this.#lasts) return
      if (!this.#trying) this.#sinceMs = undefined
      this.#trying = false
      return
    }
    this.#trying = true
    const nowMs = this.#nowMs()
    this.#sinceMs ??= nowMs
    this.#most = Math.max(1, Math.floor(cores))
    this.#untilMs = nowMs + (nowMs - this.#sinceMs < newForMs ? pauseMs.soon : pauseMs.later)
  }
}
