// Gives one stream of audio to the detection model of speech, step by step, and its probabilities to the turn detector. Once the model has not
// answered, it is over: the detector judges what follows by itself.
import { Effect } from "effect"
import { StepScores } from "#domain/audio/StepScores.ts"
import { speechStepSamples } from "#engines/protocol/Detection.ts"
import type { DetectionModel } from "#services/detection/DetectionModels.ts"

export class ModelHearing {
  readonly scores = new StepScores(speechStepSamples)
  readonly #model: DetectionModel
  /** Audio that is no whole step yet. */
  #rest: Int16Array<ArrayBuffer> = new Int16Array(0)
  #memory: Float32Array | undefined

  constructor(model: DetectionModel) {
    this.#model = model
  }

  get isOver(): boolean {
    return this.scores.hasEnded
  }

  /** The detector's stream begins with so many samples of silence before the audio. */
  begins(silentSamples: number): void {
    this.#rest = new Int16Array(silentSamples)
  }

  /** Completes when the model has judged what of the audio is whole steps, or has not answered in time. */
  hear(samples: Int16Array): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { length } = this.#rest
      const all = new Int16Array(length + samples.length)
      all.set(this.#rest)
      all.set(samples, length)
      const whole = all.length - (all.length % speechStepSamples)
      this.#rest = all.slice(whole)
      if (whole === 0) return Effect.void
      const piece = {
        samples: all.slice(0, whole),
        ...(this.#memory === undefined ? {} : { memory: this.#memory }),
      }
      return Effect.map(this.#model.detect(piece), (detected) => {
        if (detected === undefined) return this.scores.end()
        this.#memory = detected.memory
        this.scores.push(detected.scores)
      })
    })
  }
}
