// Starts the page: the key, the tabs, the node's health, and the panels.
import { Client } from "./api/Client.js"
import { NodeInfo } from "./api/NodeInfo.js"
import { sentenceOf } from "./api/Problems.js"
import { byId } from "./page/Elements.js"
import { makeTabs } from "./page/Tabs.js"
import { makeChat } from "./panels/chat/Chat.js"
import { makeListen } from "./panels/listen/Listen.js"
import { makeNode } from "./panels/node/NodePanel.js"
import { makeSpeak } from "./panels/speak/Speak.js"
import { makeTalk } from "./panels/talk/Talk.js"
import { Saved } from "./state/Saved.js"

const tab = new Saved(sessionStorage)
const settings = new Saved(localStorage)
const keyField = byId("key", HTMLInputElement)
const notice = byId("notice", HTMLElement)
keyField.value = tab.get("key", "")

const client = new Client(new URL(".", document.baseURI).href, () => keyField.value.trim())
const node = new NodeInfo(client)
/** @type {import("./page/Page.js").Page} */
const page = { client, node, settings, tab }

/** How often the health in the page's head is read. */
const healthMs = 15_000

const health = byId("health", HTMLElement)
const readHealth = async () => {
  if (document.hidden) return
  try {
    // An unhealthy node answers 503 with the same record.
    const record = await (await fetch(client.url("/health"))).json()
    health.dataset.state = record.status
    health.textContent = record.status
  } catch {
    health.dataset.state = "gone"
    health.textContent = "not reachable"
  }
}

const noKey = "Paste the API key that the start of the node printed (svc_…). It stays in this tab."
node.addEventListener("change", () => {
  notice.hidden = client.key() !== "" && node.failure === undefined
  notice.textContent = client.key() === "" ? noKey : sentenceOf(node.failure)
})

const useKey = async () => {
  tab.set("key", client.key())
  await node.refresh()
}
byId("credential", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault()
  useKey()
})
keyField.addEventListener("change", useKey)

// On narrow screens the settings begin folded, below the work.
const isNarrow = matchMedia("(max-width: 56rem)").matches
for (const details of document.querySelectorAll("details.settings"))
  if (details instanceof HTMLDetailsElement) details.open = !isNarrow

/** @type {Map<string, { shown?: (now: boolean) => void }>} */
const panels = new Map(
  Object.entries({
    chat: makeChat(page),
    speak: makeSpeak(page),
    listen: makeListen(page),
    talk: makeTalk(page),
    node: makeNode(page),
  }),
)
const tabs = document.querySelector(".tabs")
if (tabs instanceof HTMLElement)
  makeTabs(
    tabs,
    (shown) => {
      for (const [name, panel] of panels) panel.shown?.(name === shown)
    },
    true,
  )

setInterval(readHealth, healthMs)
readHealth()
node.refresh()
