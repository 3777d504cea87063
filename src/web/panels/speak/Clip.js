// The reference clip of a cloning model: a file, or a recording of the microphone.
import { sentenceOf } from "../../api/Problems.js"
import { byId } from "../../page/Elements.js"
import { Microphone } from "../../voice/audio/Microphone.js"
import { joined, pcmOf } from "../../voice/audio/Pcm.js"
import { wavFile } from "../../voice/audio/Wav.js"

/** The node takes a JSON body of 8 MB (protocol 17.1), and base64 makes 4 bytes of 3. */
const mostBytes = 5_900_000
/** The node uses 12 s of a clip. */
const mostSeconds = 15
const rate = 24_000

/** @param {Blob} blob */
const base64Of = async (blob) => {
  const bytes = new Uint8Array(await blob.arrayBuffer())
  let text = ""
  // In pieces, because a call takes only so many arguments.
  for (let at = 0; at < bytes.length; at += 8192)
    text += String.fromCharCode(...bytes.subarray(at, at + 8192))
  return btoa(text)
}

/** @param {(sentence: string) => void} say shows a problem */
export const makeClip = (say) => {
  const file = byId("speak-clip", HTMLInputElement)
  const record = byId("speak-record", HTMLButtonElement)
  const note = byId("speak-clip-note", HTMLElement)
  const audio = byId("speak-clip-audio", HTMLAudioElement)
  /** @type {Blob | undefined} */
  let clip
  /** @type {(() => void) | undefined} */
  let stopRecording

  /**
   * @param {Blob} blob
   * @param {string} name
   */
  const use = (blob, name) => {
    if (blob.size > mostBytes)
      return say(`${name} is larger than 5.9 MB: choose a shorter recording, 10 seconds are enough.`)
    clip = blob
    note.textContent = name
    if (audio.src !== "") URL.revokeObjectURL(audio.src)
    audio.src = URL.createObjectURL(blob)
    audio.hidden = false
  }
  file.addEventListener("change", () => {
    const chosen = file.files?.[0]
    if (chosen !== undefined) use(chosen, chosen.name)
  })
  record.addEventListener("click", async () => {
    if (stopRecording !== undefined) return stopRecording()
    say("")
    /** @type {Array<Uint8Array<ArrayBuffer>>} */
    const pieces = []
    let samples = 0
    try {
      const microphone = await Microphone.open({
        sampleRate: rate,
        onSamples: (piece) => {
          samples += piece.length
          pieces.push(pcmOf(piece))
          note.textContent = `Recording, ${(samples / rate).toFixed(0)} s`
          if (samples >= mostSeconds * rate) stopRecording?.()
        },
        onEnd: () => stopRecording?.(),
      })
      record.textContent = "Stop recording"
      stopRecording = () => {
        stopRecording = undefined
        microphone.stop()
        record.textContent = "Record"
        use(wavFile(joined(pieces), rate), `Recording of ${(samples / rate).toFixed(1)} s`)
      }
    } catch (error) {
      say(sentenceOf(error))
    }
  })
  return {
    /** The clip as the field `voice` takes it; undefined where there is none. */
    voice: async () => (clip === undefined ? undefined : base64Of(clip)),
  }
}
