// The request of a panel as curl, Python and TypeScript, folded.
import { h } from "./Elements.js"
import { makeTabs } from "./Tabs.js"

const languages = /** @type {const} */ ([
  ["curl", "curl"],
  ["python", "Python"],
  ["typescript", "TypeScript"],
])

/**
 * @param {HTMLElement} place the element that gets the view; its id begins the ids of the parts
 * @param {() => import("../api/Snippets.js").Snippets} snippets of the request as the panel would send it now
 */
export const makeRequestView = (place, snippets) => {
  const id = (/** @type {string} */ name) => `${place.id}-${name}`
  /** @type {keyof import("../api/Snippets.js").Snippets} */
  let chosen = "curl"
  const codes = new Map(languages.map(([name]) => [name, h("code", {})]))
  const fill = () => {
    const texts = snippets()
    for (const [name, code] of codes) code.textContent = texts[name]
  }
  const tabs = h("div", { role: "tablist", "aria-label": "Language", class: "small-tabs" })
  const panels = languages.map(([name, label]) => {
    tabs.append(
      h("button", { type: "button", role: "tab", id: id(`${name}-tab`), "aria-controls": id(name) }, label),
    )
    const panel = h("div", { role: "tabpanel", id: id(name), "aria-labelledby": id(`${name}-tab`) })
    panel.append(h("pre", { tabindex: 0 }, codes.get(name) ?? ""))
    return panel
  })
  const copy = h("button", { type: "button", class: "quiet" }, "Copy")
  copy.addEventListener("click", async () => {
    fill()
    try {
      await navigator.clipboard.writeText(codes.get(chosen)?.textContent ?? "")
      copy.textContent = "Copied"
    } catch {
      copy.textContent = "Select the text and copy it"
    }
    setTimeout(() => {
      copy.textContent = "Copy"
    }, 2000)
  })
  const details = h(
    "details",
    { class: "code" },
    h("summary", {}, "Request as code"),
    h("div", { class: "code-head" }, tabs, copy),
    ...panels,
  )
  details.addEventListener("toggle", () => details.open && fill())
  place.replaceChildren(details)
  makeTabs(tabs, (panel) => {
    chosen = languages.find(([name]) => id(name) === panel)?.[0] ?? "curl"
    fill()
  })
  return { refresh: () => details.open && fill() }
}
