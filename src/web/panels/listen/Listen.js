// The panel Listen: speech to text, live or from a file.
import { StreamCut } from "../../api/Events.js"
import { insecurePage, isAbort, Problem, sentenceOf } from "../../api/Problems.js"
import { duration, Stopwatch } from "../../api/Receipts.js"
import { liveSnippets, snippetsOf } from "../../api/Snippets.js"
import { byId, sayIn, setOptions } from "../../page/Elements.js"
import { makeModelAbout } from "../../page/ModelAbout.js"
import { receiptView } from "../../page/ReceiptView.js"
import { makeRequestView } from "../../page/RequestView.js"
import { keepFields } from "../../state/Fields.js"
import { canRecord } from "../../voice/audio/Microphone.js"
import { LiveCaptions, LiveFailure } from "../../voice/captions/LiveCaptions.js"
import { asJob, asStream, cancelJob, followJob, inOneAnswer } from "./FileModes.js"
import { fromFile, fromMicrophone } from "./LiveSource.js"
import { brokenOff, makeTranscript } from "./Transcript.js"

const liveTimes =
  "The times are those at which captions first had each word, so they are up to one caption late."

/** @param {import("../../page/Page.js").Page} page */
export const makeListen = (page) => {
  const { client, node, tab } = page
  const start = byId("listen-start", HTMLButtonElement)
  const say = sayIn(byId("listen-problem", HTMLElement))
  const level = byId("listen-level", HTMLMeterElement)
  const fileField = byId("listen-file", HTMLInputElement)
  const model = byId("listen-model", HTMLSelectElement)
  const language = byId("listen-language", HTMLInputElement)
  const punctuation = byId("listen-punctuation", HTMLSelectElement)
  const windowField = byId("listen-window", HTMLInputElement)
  const mode = byId("listen-mode", HTMLSelectElement)
  const sources = /** @type {Array<HTMLInputElement>} */ ([
    ...document.querySelectorAll("[name=listen-source]"),
  ])
  const kept = keepFields(page, "listen", [model, language, punctuation, windowField, mode])
  const about = makeModelAbout(model, node)
  const shown = makeTranscript(() => node.about(model.value))
  /** @type {(() => void) | undefined} what the button does while something runs */
  let stop

  const isFile = () => sources.find(({ checked }) => checked)?.value === "file"
  const isLive = () => !isFile() || mode.value === "live"
  const query = () => {
    const parameters = new URLSearchParams({ model: model.value })
    if (language.value.trim() !== "") parameters.set("language", language.value.trim())
    if (punctuation.value !== "") parameters.set("punctuation", punctuation.value)
    return parameters.toString()
  }
  const livePath = () => `/v1/audio/transcriptions/ws?${query()}&window_s=${windowField.value}`
  const fileFlags = () =>
    ({ stream: "&stream=true", sync: "&sync=true&response_format=verbose_json", job: "" })[mode.value] ?? ""
  const code = makeRequestView(byId("listen-code", HTMLElement), () =>
    isLive()
      ? liveSnippets(client.base, livePath())
      : snippetsOf({
          method: "POST",
          base: client.base,
          path: `/v1/audio/transcriptions?${query()}${fileFlags()}`,
          file: fileField.files?.[0]?.name ?? "speech.wav",
          answer: mode.value === "stream" ? "events" : "json",
        }),
  )
  const showFields = () => {
    byId("listen-file-part", HTMLElement).hidden = !isFile()
    byId("listen-window-shown", HTMLElement).textContent = `${Number(windowField.value)} s`
    byId("listen-ears", HTMLElement).hidden = isFile() || !node.isBuiltIn(model.value)
    const insecure = byId("listen-insecure", HTMLElement)
    insecure.hidden = isFile() || canRecord()
    insecure.textContent = insecurePage
    start.disabled = stop === undefined && !isFile() && !canRecord()
    code.refresh()
  }

  /** Why a socket ended. A refused handshake has no status in a browser, so a plain request finds the reason. */
  const liveProblem = async (/** @type {LiveFailure} */ failure) => {
    if (!failure.wasOpen) {
      await client.json("/v1/usage")
      return new Problem(
        "The node refused the live session: its model may be full or unloaded; look at the Node panel, then try again.",
      )
    }
    if (failure.code === 1006)
      return new Problem(
        "The connection ended in the middle: the text so far is kept; check that the node runs, then start again.",
      )
    return new Problem(`The live session ended (${failure.message}): start again.`)
  }

  const live = async () => {
    const file = isFile() ? fileField.files?.[0] : undefined
    if (isFile() && file === undefined) throw new Problem("There is no file yet: choose one.")
    shown.begin(file === undefined ? "Waiting for the microphone …" : "Reading the file …")
    const watch = new Stopwatch()
    // Clocks of two machines may differ by some seconds.
    const began = Date.now() / 1000 - 60
    /** @type {LiveCaptions | undefined} */
    let captions
    let peak = 0
    const receiver = {
      onAudio: (/** @type {Uint8Array<ArrayBuffer>} */ bytes, /** @type {number} */ loudness) => {
        captions?.send(bytes)
        peak = Math.max(loudness, peak * 0.9)
        level.value = peak
      },
      onEnd: () => stop?.(),
    }
    // The microphone first: its permission takes as long as the user needs, and a silent session would end meanwhile.
    const end = file === undefined ? await fromMicrophone(receiver) : await fromFile(file, receiver)
    level.hidden = false
    captions = new LiveCaptions({
      address: () => client.socket(livePath()),
      onChange: ({ firm, lagMs, sentMs, soft }) => {
        watch.first()
        shown.text(firm, soft)
        shown.lag(lagMs)
        shown.status(`Listening, ${(sentMs / 1000).toFixed(0)} s`)
      },
    })
    shown.status("Listening")
    start.textContent = "Stop"
    stop = () => {
      end()
      level.hidden = true
      shown.status("Waiting for the final text …")
      captions?.stop()
    }
    try {
      const view = await captions.finished
      shown.text(view.firm, view.soft)
      shown.status(`${(view.sentMs / 1000).toFixed(1)} s of audio`)
      shown.receipt(
        receiptView(client, watch.receipt("caption", `${(view.sentMs / 1000).toFixed(1)} s`), {
          count: view.sessionsMs.length,
          matches: (receipt) =>
            receipt.model === model.value &&
            receipt.created >= began &&
            view.sessionsMs.includes(receipt.audio_ms),
        }),
      )
      shown.offer(view.firm, view.cues, liveTimes)
    } catch (error) {
      const { cues, firm, soft } = captions.view
      shown.status(`${brokenOff} after ${(captions.view.sentMs / 1000).toFixed(0)} s of audio`)
      shown.offer((firm + soft).trim(), cues.length > 0 ? cues : undefined, "")
      throw error instanceof LiveFailure ? await liveProblem(error) : error
    } finally {
      end()
      level.hidden = true
    }
  }

  const jobName = "listen.job"
  /**
   * @param {(control: AbortController, watch: Stopwatch) => Promise<import("./FileModes.js").FileResult>} work
   */
  const whole = async (work) => {
    const control = new AbortController()
    stop = () => {
      control.abort()
      const job = tab.get(jobName, "")
      if (job !== "") cancelJob(client, job).catch(() => {})
      tab.remove(jobName)
    }
    start.textContent = "Stop"
    const watch = new Stopwatch()
    try {
      const result = await work(control, watch)
      shown.text(result.text, "")
      shown.status(`${result.seconds.toFixed(1)} s of audio in ${duration(watch.elapsedMs)}`)
      shown.receipt(
        receiptView(client, watch.receipt("text", `${result.seconds.toFixed(2)} s`), watch.receiptId),
      )
      shown.offer(result.text, result.cues, result.note)
    } catch (error) {
      shown.status(
        isAbort(error)
          ? "Stopped"
          : error instanceof StreamCut
            ? `${brokenOff}: the text has no end`
            : "Failed",
      )
      throw error
    } finally {
      tab.remove(jobName)
      shown.hideProgress()
    }
  }
  const file = () => {
    const chosen = fileField.files?.[0]
    if (chosen === undefined) throw new Problem("There is no file yet: choose one.")
    shown.begin("Uploading …")
    return whole((control, watch) => {
      const request = { client, query: query(), file: chosen, signal: control.signal, watch, shown }
      if (mode.value === "sync") return inOneAnswer(request)
      if (mode.value === "stream") return asStream(request)
      return asJob(request, (jobId) => tab.set(jobName, jobId))
    })
  }

  /** @param {() => Promise<void>} work */
  const run = async (work) => {
    say("")
    stop = () => {}
    try {
      await work()
    } catch (error) {
      if (!isAbort(error)) say(sentenceOf(error))
    }
    stop = undefined
    start.textContent = "Start"
    showFields()
  }
  start.addEventListener("click", () => {
    if (stop !== undefined) return stop()
    run(async () => (isLive() ? live() : file()))
  })
  fileField.addEventListener("change", () => {
    byId("listen-file-name", HTMLElement).textContent = fileField.files?.[0]?.name ?? ""
    showFields()
  })
  for (const field of [...sources, model, language, punctuation, windowField, mode])
    field.addEventListener("input", showFields)

  let isFirst = true
  node.addEventListener("change", () => {
    setOptions(
      model,
      node.ofKind("transcription").map(({ id }) => ({ value: id })),
      kept.wanted(model),
    )
    showFields()
    about.show()
    // A job goes on while the page is reloaded.
    const job = tab.get(jobName, "")
    if (!isFirst || job === "" || node.usage === undefined) return
    isFirst = false
    shown.begin("A job of this tab goes on")
    run(() =>
      whole((control, watch) => {
        watch.receiptId = job
        return followJob({ client, signal: control.signal, watch, shown }, job)
      }),
    )
  })
  showFields()
  return {}
}
