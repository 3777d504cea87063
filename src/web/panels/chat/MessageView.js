// One message of the conversation on the page.
import { h } from "../../page/Elements.js"
import { picture } from "./Pictures.js"

/** @param {string} text a JSON text, maybe only its beginning */
const pretty = (text) => {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/**
 * @param {import("./ChatRequest.js").ChatMessage} message
 * @param {(callId: string, result: string) => void} [answerCall] sends a tool's result; without it none can be given
 */
export const messageView = (message, answerCall) => {
  const text = h("div", { class: "text" })
  const thoughts = h("div", { class: "text" })
  const thinking = h("details", { class: "thinking" }, h("summary", {}, "Reasoning"), thoughts)
  const calls = h("div", { class: "calls" })
  const broken = h("p", { class: "broken" }, "Broken off: the answer has no end")
  const about = h("p", { class: "quiet-note about" }, message.about ?? "")
  const view = h(
    "article",
    { class: `message ${message.role}`, "aria-label": message.role === "user" ? "You" : "Model" },
    ...(message.pictures ?? []).map(picture),
    broken,
    thinking,
    text,
    calls,
    about,
  )
  if (message.role === "tool") view.prepend(h("div", { class: "quiet-note" }, `Result of ${message.callId}`))
  const update = () => {
    if (text.textContent !== message.text) text.textContent = message.text
    broken.hidden = message.isBroken !== true
    thinking.hidden = (message.reasoning ?? "") === ""
    thoughts.textContent = message.reasoning ?? ""
    calls.hidden = (message.calls ?? []).length === 0
    calls.replaceChildren(
      ...(message.calls ?? []).map((call) =>
        h(
          "div",
          { class: "call" },
          h("strong", {}, `calls ${call.name}`),
          h("pre", {}, pretty(call.arguments)),
        ),
      ),
    )
  }
  /** Adds a field for the result of each call. */
  const offerResults = () => {
    for (const [at, call] of (message.calls ?? []).entries()) {
      const result = h("input", { "aria-label": `Result of ${call.name}`, placeholder: "The tool's result" })
      const form = h("form", { class: "row" }, result, h("button", {}, "Send result"))
      form.addEventListener("submit", (event) => {
        event.preventDefault()
        form.remove()
        answerCall?.(call.id, result.value)
      })
      calls.children[at]?.append(form)
    }
  }
  update()
  return { view, update, offerResults }
}
