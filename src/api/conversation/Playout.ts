// What a client of a call hears: sends the audio of answers over its line, and tells when an answer's audio begins to be played
// (`output_audio_buffer.started`), has been played (`.stopped`) and was cut (`.cleared`).
import { Effect } from "effect"
import type { SocketError } from "effect/socket/Socket"
import type { PlayClock } from "#domain/conversation/PlayClock.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { Signal } from "#domain/queues/Signal.ts"
import type { Tell } from "../live/RealtimeItems.ts"
import type { LineSound } from "./Line.ts"

export class Playout {
  readonly #tell: Tell
  readonly #sound: LineSound
  readonly #clock: () => PlayClock
  /** The answer whose audio is being played. */
  #answer: string | undefined
  /** All its audio was sent. */
  #isComplete = false
  readonly #cleared: Array<string> = []
  readonly #news = new Signal()

  constructor(tell: Tell, sound: LineSound, clock: () => PlayClock) {
    this.#tell = tell
    this.#sound = sound
    this.#clock = clock
  }

  get rateHz(): number {
    return this.#sound.rateHz
  }

  /** Sends audio of an answer. */
  play(answer: string, samples: Int16Array): Effect.Effect<void, SocketError> {
    return Effect.suspend(() => {
      const before = this.#answer
      this.#sound.play(samples)
      if (before === answer) return Effect.void
      this.#answer = answer
      this.#isComplete = false
      const started = this.#tell("output_audio_buffer.started", { response_id: answer })
      if (before === undefined) return started
      return Effect.andThen(this.#tell("output_audio_buffer.stopped", { response_id: before }), started)
    })
  }

  /** No more audio of the answer will be sent. */
  complete(answer: string): void {
    if (this.#answer !== answer) return
    this.#isComplete = true
    this.#news.set()
  }

  /** Nothing is played from now on. */
  stopped(): void {
    if (this.#answer === undefined) return
    this.#sound.flush()
    this.#cleared.push(this.#answer)
    this.#answer = undefined
    this.#news.set()
  }

  /** Tells of ends as long as it runs. */
  readonly run: Effect.Effect<never, SocketError> = Effect.gen({ self: this }, function* (this: Playout) {
    for (;;) {
      this.#news.clear()
      for (let id = this.#cleared.shift(); id !== undefined; id = this.#cleared.shift())
        yield* this.#tell("output_audio_buffer.cleared", { response_id: id })
      const answer = this.#answer
      if (answer === undefined || !this.#isComplete) {
        yield* this.#news.wait
        continue
      }
      const leftMs = this.#clock().playedUntilMs - (yield* monotonicMs)
      if (leftMs > 0) {
        yield* Effect.raceFirst(this.#news.wait, Effect.sleep(leftMs))
        continue
      }
      this.#answer = undefined
      yield* this.#tell("output_audio_buffer.stopped", { response_id: answer })
    }
  })
}
