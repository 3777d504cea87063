// The panel Chat: a conversation with a text model, streamed.
import { jsonEvents } from "../../api/Events.js"
import { isAbort, sentenceOf } from "../../api/Problems.js"
import { Stopwatch } from "../../api/Receipts.js"
import { snippetsOf } from "../../api/Snippets.js"
import { byId, sayIn, setOptions } from "../../page/Elements.js"
import { makeModelAbout } from "../../page/ModelAbout.js"
import { receiptView } from "../../page/ReceiptView.js"
import { makeRequestView } from "../../page/RequestView.js"
import { keepFields } from "../../state/Fields.js"
import { addChunk, chatBody, toolsOf } from "./ChatRequest.js"
import { messageView } from "./MessageView.js"
import { makePictures } from "./Pictures.js"

/** @typedef {import("./ChatRequest.js").ChatMessage} ChatMessage */

const exampleTool = [
  {
    type: "function",
    function: {
      name: "get_weather",
      description: "The weather of a city",
      parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
    },
  },
]

/** @param {import("../../page/Page.js").Page} page */
export const makeChat = (page) => {
  const { client, node, tab } = page
  const log = byId("chat-log", HTMLElement)
  const say = sayIn(byId("chat-problem", HTMLElement))
  const form = byId("chat-form", HTMLFormElement)
  const text = byId("chat-text", HTMLTextAreaElement)
  const send = byId("chat-send", HTMLButtonElement)
  const model = byId("chat-model", HTMLSelectElement)
  const system = byId("chat-system", HTMLTextAreaElement)
  const temperature = byId("chat-temperature", HTMLInputElement)
  const topP = byId("chat-top-p", HTMLInputElement)
  const maxTokens = byId("chat-max", HTMLInputElement)
  const seed = byId("chat-seed", HTMLInputElement)
  const effort = byId("chat-effort", HTMLSelectElement)
  const tools = byId("chat-tools", HTMLTextAreaElement)
  const toolsProblem = byId("chat-tools-problem", HTMLElement)
  const kept = keepFields(page, "chat", [
    ...[model, system, temperature, topP, maxTokens, seed, effort, tools, text],
  ])

  const about = makeModelAbout(model, node)

  /** @type {Array<ChatMessage>} */
  let messages = tab.get("chat.messages", /** @type {Array<ChatMessage>} */ ([]))
  /** @type {AbortController | undefined} */
  let running
  let isShown = true

  const numberOf = (/** @type {HTMLInputElement} */ field) =>
    field.value === "" ? undefined : Number(field.value)
  const settingsNow = () => ({
    model: model.value,
    system: system.value,
    temperature: numberOf(temperature),
    topP: numberOf(topP),
    maxTokens: numberOf(maxTokens),
    seed: numberOf(seed),
    effort: effort.value,
    tools: toolsOf(tools.value).tools,
  })
  const pictures = makePictures({
    sees: () => node.find(model.value)?.input_modalities?.includes("image") ?? false,
    model: () => model.value,
    refuse: say,
    isShown: () => isShown,
  })
  const code = makeRequestView(byId("chat-code", HTMLElement), () => {
    const draft = text.value.trim() === "" ? "What is the capital of Italy?" : text.value
    const body = chatBody(settingsNow(), [...messages, { role: "user", text: draft }])
    return snippetsOf({
      method: "POST",
      base: client.base,
      path: "/v1/chat/completions",
      json: body,
      answer: "events",
    })
  })

  const keepMessages = () => tab.set("chat.messages", messages)
  const isNearEnd = () => innerHeight + scrollY > document.documentElement.scrollHeight - 160

  /** @param {ChatMessage} message */
  const show = (message) => {
    const shown = messageView(message, (callId, result) => {
      const answer = /** @type {const} */ ({ role: "tool", text: result, callId })
      messages.push(answer)
      show(answer)
      const called = messages.flatMap(({ calls = [] }) => calls)
      const isAnswered = (/** @type {string} */ id) => messages.some((one) => one.callId === id)
      if (called.every(({ id }) => isAnswered(id))) ask()
    })
    log.append(shown.view)
    return shown
  }

  /** Sends the conversation and adds the answer. */
  const ask = async () => {
    say("")
    const checked = toolsOf(tools.value)
    toolsProblem.textContent = checked.problem
    if (checked.problem !== "") return
    /** @type {ChatMessage} */
    const answer = { role: "assistant", text: "", about: node.about(model.value) }
    const shown = show(answer)
    const control = new AbortController()
    running = control
    send.textContent = "Stop"
    log.setAttribute("aria-busy", "true")
    const watch = new Stopwatch()
    /** @type {number | undefined} */
    let tokens
    let failed = false
    try {
      const json = chatBody(settingsNow(), messages)
      const response = await client.fetch("/v1/chat/completions", { json, signal: control.signal })
      watch.answered(response)
      if (response.body === null) throw new Error("the answer has no body")
      for await (const chunk of jsonEvents(response.body)) {
        const added = addChunk(answer, chunk)
        if (added.grew) watch.first()
        tokens = added.tokens ?? tokens
        const follow = isNearEnd()
        shown.update()
        if (follow) scrollTo({ top: document.documentElement.scrollHeight })
      }
    } catch (error) {
      failed = !isAbort(error)
      if (failed) say(sentenceOf(error))
    }
    running = undefined
    send.textContent = "Send"
    log.removeAttribute("aria-busy")
    const isEmpty = answer.text === "" && (answer.calls ?? []).length === 0
    if (failed && isEmpty) {
      shown.view.remove()
      return
    }
    if (failed) answer.isBroken = true
    messages.push(answer)
    keepMessages()
    shown.update()
    shown.offerResults()
    const note = tokens === undefined ? undefined : `${tokens} tokens`
    shown.view.append(receiptView(client, watch.receipt("token", note), watch.receiptId))
  }

  /** @param {string} draft */
  const draftIs = (draft) => {
    text.value = draft
    text.dispatchEvent(new Event("change"))
  }
  form.addEventListener("submit", async (event) => {
    event.preventDefault()
    if (running !== undefined) return running.abort()
    const draft = text.value.trim()
    if (draft === "") return
    const taken = pictures.take()
    /** @type {ChatMessage} */
    const message = { role: "user", text: draft, ...(taken.length === 0 ? {} : { pictures: taken }) }
    const before = messages.length
    messages.push(message)
    keepMessages()
    const shown = show(message)
    draftIs("")
    await ask()
    // Refused: the message goes back into its field, before what was typed meanwhile, so that nothing is typed twice.
    if (messages.length === before + 1) {
      messages.pop()
      keepMessages()
      shown.view.remove()
      draftIs([draft, text.value].filter((part) => part !== "").join("\n"))
      pictures.putBack(taken)
    }
    code.refresh()
  })
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return
    event.preventDefault()
    form.requestSubmit()
  })
  text.addEventListener("input", () => code.refresh())
  model.addEventListener("change", () => pictures.show())
  tools.addEventListener("input", () => {
    toolsProblem.textContent = toolsOf(tools.value).problem
  })
  byId("chat-tools-example", HTMLButtonElement).addEventListener("click", () => {
    tools.value = JSON.stringify(exampleTool, null, 2)
    tools.dispatchEvent(new Event("input"))
  })
  byId("chat-clear", HTMLButtonElement).addEventListener("click", () => {
    running?.abort()
    messages = []
    keepMessages()
    log.replaceChildren()
    say("")
    text.focus()
  })
  node.addEventListener("change", () => {
    setOptions(
      model,
      node.ofKind("text").map(({ id }) => ({ value: id })),
      kept.wanted(model),
    )
    pictures.show()
    about.show()
  })
  // A question whose answer a reload has cut off is a draft again.
  if (messages.at(-1)?.role === "user") {
    const unanswered = messages.pop()
    keepMessages()
    if (text.value === "") draftIs(unanswered?.text ?? "")
    pictures.putBack(unanswered?.pictures ?? [])
  }
  for (const message of messages) {
    const shown = show(message)
    const isAnswered = (message.calls ?? []).some(({ id }) => messages.some(({ callId }) => callId === id))
    if (!isAnswered) shown.offerResults()
  }

  return {
    /** @param {boolean} now whether this panel is the one that is shown */
    shown: (now) => {
      isShown = now
    },
  }
}
