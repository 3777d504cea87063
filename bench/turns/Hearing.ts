// The gateway's own detector on audio of known content, in events of a client.
import { speechWeights } from "#audio/SpeechWeights.ts"
import { EchoDetector } from "#domain/activity/EchoDetector.ts"
import { PlayedAudio } from "#domain/activity/PlayedAudio.ts"
import { defaultRules, VoiceActivityDetector } from "#domain/audio/VoiceActivityDetector.ts"
import { s16 } from "./Clips.ts"
import { rateHz } from "./Sounds.ts"

/** Samples of a client's event: 20 ms. */
const frame = rateHz / 50
export const perMs = rateHz / 1000
/** The answer begins so long after the audio, and audio is sent so far ahead of its play. */
export const startsMs = 500
const aheadMs = 1_000
interface Heard {
  /** When the first speech was found, and when the last ended, milliseconds; positions by the detector. */
  readonly foundMs: number | undefined
  readonly stoppedAtMs: number | undefined
  /** Each start: when it was found, and where the detector says that the speech began. */
  readonly starts: ReadonlyArray<{ readonly atMs: number; readonly fromMs: number }>
}

/** `played`: an answer that is sent meanwhile, of which the microphone may hear an echo. */
export const hear = (samples: Int16Array, silenceMs: number, played?: Float32Array): Heard => {
  const reference = new PlayedAudio()
  const echo = new EchoDetector(reference)
  let [nowMs, sent, hopMs] = [0, 0, 0]
  const doubt = {
    hear: (energies: Float32Array) => {
      hopMs += 10
      echo.hear(energies, hopMs)
    },
    get isEcho() {
      return echo.isEcho
    },
  }
  const rules = { ...defaultRules, silenceMs }
  const detector = new VoiceActivityDetector(speechWeights, rules, played === undefined ? undefined : doubt)
  const out = played === undefined ? undefined : s16(played)
  const starts: Array<{ readonly atMs: number; readonly fromMs: number }> = []
  let [foundMs, stoppedAtMs]: Array<number | undefined> = [undefined, undefined]
  for (let at = 0; at + frame <= samples.length; at += frame) {
    nowMs = (at + frame) / perMs
    while (out !== undefined && sent < out.length && startsMs + sent / perMs < nowMs + aheadMs) {
      reference.sent(out.subarray(sent, sent + rateHz / 10), startsMs + sent / perMs, nowMs)
      sent += rateHz / 10
    }
    for (const { audioMs, type } of detector.push(samples.subarray(at, at + frame))) {
      if (type === "started") {
        foundMs ??= nowMs
        starts.push({ atMs: nowMs, fromMs: audioMs })
      } else stoppedAtMs = nowMs
    }
  }
  return { foundMs, stoppedAtMs, starts }
}
