// Starts the page: the key, the tabs, the node's health, and the panels.
import { Client } from "./api/Client.js"
import { HealthWatch } from "./api/HealthWatch.js"
import { cleanKey, keyOfFragment } from "./api/Key.js"
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

// The page opens at its top, also after a reload.
history.scrollRestoration = "manual"

const tab = new Saved(sessionStorage)
const settings = new Saved(localStorage)
const keyField = byId("key", HTMLInputElement)
const notice = byId("notice", HTMLElement)

/** Takes a key out of the address, so that it is not bookmarked, shared or seen. Whether there was one. */
const takeKey = () => {
  const key = keyOfFragment(location.hash)
  if (key === undefined) return false
  history.replaceState(null, "", `${location.pathname}${location.search}`)
  keyField.value = key
  tab.set("key", key)
  return true
}
if (!takeKey()) keyField.value = tab.get("key", "")

const client = new Client(new URL(".", document.baseURI).href, () => cleanKey(keyField.value))
const node = new NodeInfo(client)
const watch = new HealthWatch(client)
/** @type {import("./page/Page.js").Page} */
const page = { client, node, health: watch, settings, tab }

const noKey =
  "Paste the API key that the start of the node printed (svc_…), or open the link that it printed; each tab keeps its own."
const gone =
  "The node does not answer: what is typed here stays, and the page goes on when the node runs again."

/** The one sentence at the page's head; empty for none. */
const noticeNow = () => {
  const { first, now } = watch.versions
  if (watch.state === "gone") return gone
  if (client.key() === "") return noKey
  if (node.failure !== undefined) return sentenceOf(node.failure)
  return first === now ? "" : `The node is edgewise ${now} now: reload this page, which is of ${first}.`
}
const tell = () => {
  const sentence = noticeNow()
  if (notice.textContent !== sentence) notice.textContent = sentence
  notice.hidden = sentence === ""
}
const health = byId("health", HTMLElement)
node.addEventListener("change", tell)
watch.addEventListener("change", () => {
  health.dataset.state = watch.state
  health.textContent = watch.state === "gone" ? "not reachable" : watch.state
  tell()
})
client.onGone = () => watch.start()
// Its models, and whether it still knows the key, may be others after a restart.
watch.addEventListener("back", () => node.refresh())

const useKey = async () => {
  keyField.value = client.key()
  tab.set("key", client.key())
  await node.refresh()
}
byId("credential", HTMLFormElement).addEventListener("submit", (event) => {
  event.preventDefault()
  useKey()
})
keyField.addEventListener("change", useKey)
// The link may be opened in a tab that already shows the page.
addEventListener("hashchange", () => takeKey() && node.refresh())

for (const details of document.querySelectorAll("details.expert")) {
  if (!(details instanceof HTMLDetailsElement)) continue
  details.open = settings.get(details.id, false)
  details.addEventListener("toggle", () => settings.set(details.id, details.open))
}
const head = document.querySelector(".top")
if (head !== null)
  new ResizeObserver(() => {
    // What the keyboard moves to is never scrolled below the head, which stays in sight.
    document.documentElement.style.scrollPaddingTop = `${head.clientHeight}px`
  }).observe(head)

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

document.addEventListener("visibilitychange", () => watch.start())
watch.start()
node.refresh()
