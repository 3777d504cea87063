// The panel Talk: a conversation by voice. The node answers what the microphone hears, and stops when it is spoken over.
import { insecurePage, isAbort, Problem, sentenceOf } from "../../api/Problems.js"
import { talkSnippets } from "../../api/TalkSnippets.js"
import { byId, sayIn, setOptions } from "../../page/Elements.js"
import { makeModelAbout } from "../../page/ModelAbout.js"
import { makeRequestView } from "../../page/RequestView.js"
import { keepFields } from "../../state/Fields.js"
import { canRecord, Microphone } from "../../voice/audio/Microphone.js"
import { pcmOf } from "../../voice/audio/Pcm.js"
import { Playback, PlaybackBlocked } from "../../voice/audio/Playback.js"
import { Call } from "../../voice/talk/Call.js"
import { Conversation, conversationRate, TalkFailure } from "../../voice/talk/Conversation.js"
import { makeTurns } from "./TurnsView.js"

/** How often what has been played is shown, milliseconds: about a syllable. */
const shownEveryMs = 80

/** @type {Record<import("../../voice/talk/Conversation.js").Floor | "off" | "broken", string>} */
const floors = {
  off: "Not connected",
  broken: "Broken off",
  listening: "Listening",
  user: "You speak",
  thinking: "The node thinks",
  node: "The node speaks: talk to interrupt it",
}

/** @param {import("../../page/Page.js").Page} page */
export const makeTalk = (page) => {
  const { client, health, node } = page
  const start = byId("talk-start", HTMLButtonElement)
  const hold = byId("talk-hold", HTMLButtonElement)
  const interrupt = byId("talk-interrupt", HTMLButtonElement)
  const level = byId("talk-level", HTMLMeterElement)
  const say = sayIn(byId("talk-problem", HTMLElement))
  const floor = byId("talk-floor", HTMLElement)
  const model = byId("talk-model", HTMLSelectElement)
  const voice = byId("talk-voice", HTMLSelectElement)
  const instructions = byId("talk-instructions", HTMLTextAreaElement)
  const silence = byId("talk-silence", HTMLInputElement)
  const modes = /** @type {Array<HTMLInputElement>} */ ([...document.querySelectorAll("[name=talk-turns]")])
  const kept = keepFields(page, "talk", [model, voice, instructions, silence])
  const about = makeModelAbout(model, node)
  const turns = makeTurns(byId("talk-log", HTMLElement), byId("talk-said", HTMLElement))
  /** @type {Conversation | undefined} */
  let talk
  /** What the button Start does while a conversation runs or begins. @type {(() => void) | undefined} */
  let stop
  let isHeld = false
  /** Whether the latest conversation ended by itself. */
  let isBroken = false

  const mode = () => modes.find(({ checked }) => checked)?.value
  const isManual = () => mode() === "manual"
  const turnDetection = () => {
    if (isManual()) return null
    return mode() === "semantic"
      ? { type: "semantic_vad", interrupt_response: true }
      : { type: "server_vad", silence_duration_ms: Number(silence.value), interrupt_response: true }
  }
  const query = () => `model=${encodeURIComponent(model.value)}`
  const path = () => `/v1/realtime?${query()}`
  const session = () => ({
    ...(instructions.value.trim() === "" ? {} : { instructions: instructions.value.trim() }),
    include: ["response.latency"],
    audio: {
      input: {
        transcription: {},
        turn_detection: turnDetection(),
      },
      ...(voice.value === "" ? {} : { output: { voice: voice.value } }),
    },
  })
  const code = makeRequestView(byId("talk-code", HTMLElement), () =>
    talkSnippets(client.base, path(), session()),
  )

  const showFields = () => {
    const runs = stop !== undefined
    byId("talk-silence-shown", HTMLElement).textContent = `${Number(silence.value)} ms of silence`
    const ears = node.ofKind("transcription")[0]
    byId("talk-ears", HTMLElement).hidden = ears === undefined || !node.isBuiltIn(ears.id)
    const insecure = byId("talk-insecure", HTMLElement)
    insecure.hidden = canRecord()
    insecure.textContent = insecurePage
    start.disabled = !runs && !canRecord()
    start.textContent = runs ? "Stop" : "Start"
    hold.hidden = talk === undefined || !isManual()
    for (const field of [model, voice, instructions, silence, ...modes]) field.disabled = runs
    silence.disabled ||= mode() !== "automatic"
    code.refresh()
  }
  const show = () => {
    const now = talk?.floor ?? (isBroken ? "broken" : "off")
    if (floor.dataset.floor !== now) {
      floor.dataset.floor = now
      floor.textContent = floors[now]
    }
    interrupt.hidden = now !== "node"
    if (talk !== undefined) turns.show(talk.turns, isBroken)
  }

  /** Why a conversation ended. A refused handshake has no status in a browser, so a plain request finds the reason. */
  const reasonOf = async (/** @type {TalkFailure} */ failure) => {
    if (!failure.wasOpen) {
      await client.json("/v1/usage")
      return new Problem(
        "The node refused the conversation: it needs a text model, a voice and a transcription model with free places; look at the Node panel, then try again.",
      )
    }
    if (failure.code === 1006)
      return new Problem(
        "The connection ended in the middle: what was said is kept; check that the node runs, then start again.",
      )
    return new Problem(`The conversation ended (${failure.message}): start again.`)
  }

  /** Shows what the conversation is with, and how it travels. @param {string} way */
  const showAbout = (way) => {
    byId("talk-about", HTMLElement).textContent = [node.about(model.value), way]
      .filter((words) => words !== "")
      .join(", ")
  }

  /**
   * A call where the node takes calls and is reached by UDP; elsewhere a WebSocket. A call never pauses, so a turn that is held
   * by hand goes over the WebSocket, too.
   * @param {Microphone} microphone
   * @returns {Promise<{ call?: Call, address?: { url: string, protocols: Array<string> } }>}
   */
  const wayOf = async (microphone) => {
    let why = ""
    if (health.takesCalls && !isManual()) {
      const call = new Call(microphone.stream)
      try {
        await call.connect(async (offer) => {
          const form = new FormData()
          form.set("sdp", offer)
          return (await client.fetch(`/v1/realtime/calls?${query()}`, { body: form })).text()
        })
        showAbout("over WebRTC")
        return { call }
      } catch {
        // What else is wrong, the WebSocket says.
        why = ": the call could not be connected"
      }
    }
    showAbout(`over the WebSocket${why}`)
    return { address: client.socket(path()) }
  }

  const converse = async () => {
    turns.clear()
    isBroken = false
    showAbout("")
    const context = new AudioContext({ sampleRate: conversationRate })
    let isOver = false
    /** @type {(() => void) | undefined} */
    let end
    stop = () => {
      isOver = true
      end?.()
    }
    showFields()
    let peak = 0
    /** @type {Microphone | undefined} */
    let microphone
    const timer = setInterval(show, shownEveryMs)
    try {
      // In the handler of the click: browsers block sound before one.
      await new Playback({ sampleRate: conversationRate, context }).start()
      microphone = await Microphone.open({
        sampleRate: conversationRate,
        processing: true,
        onSamples: (samples) => {
          peak = Math.max(peak * 0.9, ...samples.map(Math.abs))
          level.value = peak
          if (!isManual() || isHeld) talk?.hear(pcmOf(samples))
        },
        onEnd: () => stop?.(),
      })
      if (isOver) return
      level.hidden = false
      const way = await wayOf(microphone)
      if (isOver) return way.call?.close()
      const conversation = new Conversation({
        ...way,
        session: session(),
        makePlayer: () => new Playback({ sampleRate: conversationRate, context }),
        onProblem: (message) => say(`The node said: ${message.replace(/\.$/, "")}; speak again.`),
      })
      talk = conversation
      end = () => conversation.close()
      showFields()
      await conversation.finished
    } catch (error) {
      if (error instanceof PlaybackBlocked) {
        throw new Problem(
          "The browser blocked the sound: press Start again, or allow sound beside the page's address.",
        )
      }
      isBroken = error instanceof TalkFailure && error.wasOpen
      show()
      throw error instanceof TalkFailure ? await reasonOf(error) : error
    } finally {
      show()
      clearInterval(timer)
      microphone?.stop()
      context.close()
      level.hidden = true
      talk = undefined
      isHeld = false
      show()
    }
  }

  start.addEventListener("click", async () => {
    if (stop !== undefined) return stop()
    say("")
    try {
      await converse()
    } catch (error) {
      if (!isAbort(error)) say(sentenceOf(error))
    }
    stop = undefined
    showFields()
  })
  interrupt.addEventListener("click", () => {
    talk?.interrupt()
    show()
  })

  /** @param {boolean} now */
  const held = (now) => {
    if (now === isHeld || talk === undefined) return
    isHeld = now
    hold.setAttribute("aria-pressed", String(now))
    if (now) {
      say("")
      talk.beginTurn()
    } else talk.endTurn()
    show()
  }
  const isHoldKey = (/** @type {KeyboardEvent} */ { key }) => key === " " || key === "Enter"
  hold.addEventListener("pointerdown", (event) => {
    hold.setPointerCapture(event.pointerId)
    held(true)
  })
  for (const ending of ["pointerup", "pointercancel", "blur"])
    hold.addEventListener(ending, () => held(false))
  hold.addEventListener("keydown", (event) => {
    if (!isHoldKey(event)) return
    event.preventDefault()
    if (!event.repeat) held(true)
  })
  hold.addEventListener("keyup", (event) => {
    if (isHoldKey(event)) held(false)
  })

  const readVoices = async () => {
    const speech = node.ofKind("speech")
    /** @type {Array<string>} */
    let voices = []
    for (const { id } of speech) {
      try {
        const list = await client.json(`/v1/audio/voices?model=${encodeURIComponent(id)}`)
        if (!list.cloning && voices.length === 0) voices = list.voices
      } catch (error) {
        say(sentenceOf(error))
      }
    }
    setOptions(
      voice,
      [{ value: "", label: "The model's own" }, ...voices.map((value) => ({ value }))],
      kept.wanted(voice),
    )
    showFields()
  }
  node.addEventListener("change", () => {
    setOptions(
      model,
      [...node.ofKind("conversation"), ...node.ofKind("text")].map(({ id }) => ({ value: id })),
      kept.wanted(model),
    )
    about.show()
    readVoices()
  })
  for (const field of [model, voice, instructions, silence, ...modes])
    field.addEventListener("input", showFields)
  showFields()
  return {}
}
