// The panel Speak: text to speech, played while it arrives.
import { StreamCut } from "../../api/Events.js"
import { isAbort, Problem, sentenceOf } from "../../api/Problems.js"
import { Stopwatch } from "../../api/Receipts.js"
import { snippetsOf } from "../../api/Snippets.js"
import { byId, offerFile, sayIn, setOptions } from "../../page/Elements.js"
import { makeModelAbout } from "../../page/ModelAbout.js"
import { receiptView } from "../../page/ReceiptView.js"
import { makeRequestView } from "../../page/RequestView.js"
import { keepFields } from "../../state/Fields.js"
import { joined } from "../../voice/audio/Pcm.js"
import { Playback } from "../../voice/audio/Playback.js"
import { wavFile } from "../../voice/audio/Wav.js"
import { makeChart } from "./Chart.js"
import { makeClip } from "./Clip.js"

/** All speech is 24 kHz (protocol 8.2). */
const rate = 24_000
/** The choice of the list of voices that means the user's own clip. */
const ownVoice = "(your recording)"

/** @typedef {{ voices: Array<string>, cloning: boolean, languages: Array<string> }} Voices */

/** @param {import("../../page/Page.js").Page} page */
export const makeSpeak = (page) => {
  const { client, node } = page
  const form = byId("speak-form", HTMLFormElement)
  const text = byId("speak-text", HTMLTextAreaElement)
  const play = byId("speak-play", HTMLButtonElement)
  const say = sayIn(byId("speak-problem", HTMLElement))
  const model = byId("speak-model", HTMLSelectElement)
  const voice = byId("speak-voice", HTMLSelectElement)
  const language = byId("speak-language", HTMLSelectElement)
  const speed = byId("speak-speed", HTMLInputElement)
  const transcript = byId("speak-transcript", HTMLTextAreaElement)
  const result = byId("speak-result", HTMLElement)
  const status = byId("speak-status", HTMLElement)
  const chart = makeChart(byId("speak-chart", HTMLElement))
  const download = byId("speak-download", HTMLAnchorElement)
  const kept = keepFields(page, "speak", [text, model, voice, language, speed, transcript])

  const clip = makeClip(say)
  const about = makeModelAbout(model, node)
  /** @type {Voices} */
  let voices = { voices: [], cloning: false, languages: [] }
  /** @type {(() => void) | undefined} ends what is played */
  let stop

  /** @param {string} chosenVoice */
  const bodyOf = (chosenVoice) => ({
    model: model.value,
    input: text.value,
    voice: chosenVoice,
    ...(voice.value === ownVoice ? { voice_transcript: transcript.value } : {}),
    ...(voices.languages.length > 1 ? { language: language.value } : {}),
    ...(speed.value === "1" || voices.cloning ? {} : { speed: Number(speed.value) }),
    response_format: "pcm",
    stream: true,
  })
  const code = makeRequestView(byId("speak-code", HTMLElement), () =>
    snippetsOf({
      method: "POST",
      base: client.base,
      path: "/v1/audio/speech",
      json: bodyOf(voice.value === ownVoice ? "BASE64 OF THE RECORDING" : voice.value),
      answer: "audio",
      saveAs: "speech.pcm",
    }),
  )

  const showFields = () => {
    byId("speak-count", HTMLElement).textContent = `${[...text.value].length} characters`
    byId("speak-speed-shown", HTMLElement).textContent = `${Number(speed.value)}×`
    byId("speak-clone", HTMLElement).hidden = voice.value !== ownVoice
    speed.disabled = voices.cloning
    speed.title = voices.cloning ? "A cloning model streams at one speed" : ""
    code.refresh()
  }
  const readVoices = async () => {
    voices = { voices: [], cloning: false, languages: [] }
    if (model.value !== "") {
      try {
        voices = await client.json(`/v1/audio/voices?model=${encodeURIComponent(model.value)}`)
      } catch (error) {
        say(sentenceOf(error))
      }
    }
    const own = voices.cloning ? [{ value: ownVoice }] : []
    setOptions(voice, [...voices.voices.map((value) => ({ value })), ...own], kept.wanted(voice))
    setOptions(
      language,
      voices.languages.map((value) => ({ value })),
      kept.wanted(language),
    )
    language.disabled = voices.languages.length < 2
    showFields()
  }

  /** Reads the stream, plays it, and shows how it went. */
  const speak = async () => {
    say("")
    const own = voice.value === ownVoice
    const chosen = own ? await clip.voice() : voice.value
    if (chosen === undefined)
      throw new Problem("There is no recording yet: choose one in the settings, or record one.")
    if (own && transcript.value.trim() === "")
      throw new Problem("The model needs the words of the recording: write down what is said in it.")
    const playback = new Playback({ sampleRate: rate })
    const control = new AbortController()
    let isStopped = false
    stop = () => {
      isStopped = true
      control.abort()
      playback.stop()
    }
    play.textContent = "Stop"
    try {
      await playback.start()
      result.hidden = false
      download.hidden = true
      status.textContent = "Waiting for the first audio …"
      status.classList.remove("broken")
      byId("speak-about", HTMLElement).textContent = node.about(model.value)
      chart.clear()
      byId("speak-receipt", HTMLElement).replaceChildren()
      const began = playback.now
      const watch = new Stopwatch()
      const response = await client.fetch("/v1/audio/speech", {
        json: bodyOf(chosen),
        signal: control.signal,
      })
      watch.answered(response)
      /** @type {Array<Uint8Array>} */
      const pieces = []
      let bytes = 0
      const { buffer } = playback
      const tell = () => {
        const gaps = buffer.underruns === 0 ? "no gaps" : `${buffer.underruns} gaps`
        status.textContent = `${(bytes / 2 / rate).toFixed(1)} s of speech, ${gaps}`
        chart.draw(buffer.pieces, began, buffer.smallestMargin)
      }
      const reader = response.body?.getReader()
      let failure
      for (;;) {
        const read = await reader?.read().catch((error) => {
          failure = isAbort(error) ? error : new StreamCut()
          return undefined
        })
        if (read === undefined || read.done) break
        watch.first()
        pieces.push(read.value)
        bytes += read.value.length
        playback.push(read.value)
        tell()
      }
      const receipt = watch.receipt("audio", `${(bytes / 2 / rate).toFixed(2)} s`)
      byId("speak-receipt", HTMLElement).replaceChildren(receiptView(client, receipt, watch.receiptId))
      if (bytes > 0) {
        const whole = joined(pieces)
        offerFile(download, wavFile(whole.subarray(0, whole.length & ~1), rate), "speech.wav")
      }
      playback.end()
      if (failure !== undefined && !isStopped) {
        status.classList.add("broken")
        status.textContent = `Broken off after ${(bytes / 2 / rate).toFixed(1)} s of speech`
        say(sentenceOf(failure))
      }
      await playback.finished
    } finally {
      playback.stop()
      stop = undefined
      play.textContent = "Play"
    }
  }

  form.addEventListener("submit", async (event) => {
    event.preventDefault()
    if (stop !== undefined) return stop()
    try {
      await speak()
    } catch (error) {
      if (isAbort(error)) return
      if (chart.isEmpty()) result.hidden = true
      say(sentenceOf(error))
    }
  })
  text.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) form.requestSubmit()
  })
  for (const field of [text, voice, language, speed, transcript]) field.addEventListener("input", showFields)
  model.addEventListener("change", readVoices)
  node.addEventListener("change", () => {
    setOptions(
      model,
      node.ofKind("speech").map(({ id }) => ({ value: id })),
      kept.wanted(model),
    )
    about.show()
    readVoices()
  })
  return {}
}
