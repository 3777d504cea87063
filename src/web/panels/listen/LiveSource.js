// Where live audio comes from: the microphone, or a file at the speed of speech.
import { Problem } from "../../api/Problems.js"
import { Microphone } from "../../voice/audio/Microphone.js"
import { pcmOf } from "../../voice/audio/Pcm.js"
import { captionRate } from "../../voice/captions/LiveCaptions.js"

/** Milliseconds of a file that are sent at once. */
const pieceMs = 100

/** The loudest sample of a piece. @param {Float32Array} samples */
const peakOf = (samples) => samples.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0)

/**
 * @typedef {object} Receiver
 * @property {(bytes: Uint8Array<ArrayBuffer>, loudness: number) => void} onAudio
 * @property {() => void} onEnd the source has ended by itself
 */

/**
 * @param {Receiver} receiver
 * @returns {Promise<() => void>} ends it
 */
export const fromMicrophone = async ({ onAudio, onEnd }) => {
  const microphone = await Microphone.open({
    sampleRate: captionRate,
    onSamples: (samples) => onAudio(pcmOf(samples), peakOf(samples)),
    onEnd,
  })
  return () => microphone.stop()
}

/** @param {File} file @returns {Promise<Float32Array>} mono, at the rate of captions */
const decoded = async (file) => {
  // Its length does not matter: the context only decodes, and changes the rate.
  const context = new OfflineAudioContext(1, 1, captionRate)
  const sound = await context.decodeAudioData(await file.arrayBuffer()).catch(() => {
    throw new Problem(
      `This browser cannot read ${file.name}: choose a WAV or MP3 file, or let the node read it "in one answer" (Settings).`,
    )
  })
  const mixed = new Float32Array(sound.length)
  for (let channel = 0; channel < sound.numberOfChannels; channel++)
    for (const [at, sample] of sound.getChannelData(channel).entries())
      mixed[at] = (mixed[at] ?? 0) + sample / sound.numberOfChannels
  return mixed
}

/**
 * @param {File} file
 * @param {Receiver} receiver
 * @returns {Promise<() => void>} ends it
 */
export const fromFile = async (file, { onAudio, onEnd }) => {
  const samples = await decoded(file)
  const began = performance.now()
  let sent = 0
  const timer = setInterval(() => {
    // By the clock and not by the count of calls: timers of a hidden tab are rare.
    const due = Math.min(samples.length, Math.floor(((performance.now() - began) * captionRate) / 1000))
    const piece = samples.subarray(sent, due)
    sent = due
    if (piece.length > 0) onAudio(pcmOf(piece), peakOf(piece))
    if (sent < samples.length) return
    clearInterval(timer)
    onEnd()
  }, pieceMs)
  return () => clearInterval(timer)
}
