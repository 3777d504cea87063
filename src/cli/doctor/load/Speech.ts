// Speech requests of the load client: one synthesized text, and many streams started at once to measure how many the
// node admits and whether their playback has gaps.
import { AudioReply } from "#harness/client/AudioReply.ts"
import { isUnfinished, RequestFailed } from "#harness/client/Failures.ts"
import { speak } from "#harness/client/SpeechRequest.ts"
import { play } from "#harness/figures/VirtualPlayer.ts"
import type { Run, Voice } from "./Tasks.ts"

/** Of the node's PCM. */
const rateHz = 24_000

const askOf = ({ model, voice }: Voice, input: string, stream: boolean) =>
  ({ model, voice, input, format: "pcm", rateHz, playerBufferMs: 0, fields: { stream } }) as const

export const runSpeak: Run<"speak"> = async (target, { deadlineMs, stream, text, voice }) => {
  const ask = askOf(voice, text, stream)
  const { figures } = await speak(target, ask, performance.now(), AbortSignal.timeout(deadlineMs))
  const { audio = 0, e2e = 0, first_byte: firstAudioMs = e2e } = figures
  return { firstAudioMs, tookMs: e2e, audioMs: 1000 * audio }
}

/** A shorter gap does not count: a client's buffer bridges it. */
const bridgedMs = 20

/** Whether playback had a gap, or has one now at the end of what arrived. */
const ranDry = ({ deliveries, firstByteMs }: AudioReply, isPlaying: boolean): boolean => {
  const { audioMs, starvedMs } = play(deliveries)
  const waitingMs = isPlaying && firstByteMs !== undefined ? performance.now() - firstByteMs - audioMs : 0
  return Math.max(starvedMs, waitingMs) > bridgedMs
}

export const runPlay: Run<"play"> = async (target, { deadlineMs, streams, text, voice }) => {
  const signal = AbortSignal.timeout(deadlineMs)
  const beganMs = performance.now()
  const ask = askOf(voice, text, true)
  const replies = await Promise.all(
    Array.from({ length: streams }, async () => {
      const reply = new AudioReply(rateHz, true)
      try {
        await speak(target, ask, beganMs, signal, reply)
        return { reply, isRefused: false, isPlaying: false }
      } catch (error) {
        const isRefused = error instanceof RequestFailed && error.key === "503"
        if (isRefused || isUnfinished(error)) return { reply, isRefused, isPlaying: !isRefused }
        throw error
      }
    }),
  )
  return {
    refused: replies.filter(({ isRefused }) => isRefused).length,
    firstAudioMs: replies.flatMap(({ reply }) =>
      reply.firstByteMs === undefined ? [] : [reply.firstByteMs - beganMs],
    ),
    ranDry: replies.filter(({ isPlaying, reply }) => ranDry(reply, isPlaying)).length,
  }
}
