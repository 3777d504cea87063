// The turns of a conversation on the page: each is drawn once and then changed, so that reading and selecting it is not disturbed.
import { onWidth } from "../../page/Drawing.js"
import { h } from "../../page/Elements.js"
import { ledgerView } from "./LedgerView.js"

const names = { user: "You", node: "Node" }

/**
 * @param {HTMLElement} log
 * @param {HTMLElement} said says each turn once to a screen reader, when it is complete
 */
export const makeTurns = (log, said) => {
  /** @type {Map<string, { box: HTMLElement, text: HTMLElement, note: HTMLElement, ledger: HTMLElement, drawn: string, isSaid: boolean }>} */
  const boxes = new Map()
  /** @type {ReadonlyArray<import("../../voice/talk/Conversation.js").Turn>} */
  let last = []

  /** @param {import("../../voice/talk/Conversation.js").Turn} turn */
  const boxOf = (turn) => {
    const known = boxes.get(turn.id)
    if (known !== undefined) return known
    const text = h("p", { class: "text" })
    const note = h("p", { class: "quiet-note" })
    const ledger = h("div")
    const kind = turn.who === "user" ? "user" : "assistant"
    const box = h("div", { class: `message ${kind}` }, h("h2", {}, names[turn.who]), text, note, ledger)
    const made = { box, text, note, ledger, drawn: "", isSaid: false }
    boxes.set(turn.id, made)
    log.append(box)
    return made
  }

  /** Draws the answers whose times, or whose scale, are others than before. */
  const drawLedgers = () => {
    const longestMs = Math.max(0, ...last.map(({ ledger }) => ledger?.longestMs ?? 0))
    const room = { place: log.clientWidth, longestMs }
    for (const { id, ledger } of last) {
      const made = boxes.get(id)
      if (ledger === undefined || made === undefined) continue
      const drawn = JSON.stringify([room, ledger.marks, ledger.onNode])
      if (drawn === made.drawn) continue
      made.drawn = drawn
      made.ledger.replaceChildren(ledgerView(ledger, room))
    }
  }
  onWidth(log, drawLedgers)

  return {
    clear: () => {
      last = []
      boxes.clear()
      log.replaceChildren()
      said.replaceChildren()
    },
    /**
     * @param {ReadonlyArray<import("../../voice/talk/Conversation.js").Turn>} turns
     * @param {boolean} [isBroken] whether the connection ended while they were going on
     */
    show: (turns, isBroken = false) => {
      last = turns
      for (const turn of turns) {
        const made = boxOf(turn)
        const { box, note, text } = made
        const shown = turn.text === "" && turn.isOpen ? "…" : turn.text
        if (text.textContent !== shown) {
          text.textContent = shown
          box.scrollIntoView({ block: "nearest" })
        }
        note.textContent = turn.isCut ? "interrupted here" : turn.isOpen && isBroken ? "broken off here" : ""
        note.hidden = note.textContent === ""
        if (!turn.isOpen && !made.isSaid && turn.text !== "") {
          made.isSaid = true
          said.append(h("span", {}, `${names[turn.who]}: ${turn.text} `))
        }
      }
      const ids = new Set(turns.map(({ id }) => id))
      for (const [id, { box }] of boxes) {
        if (ids.has(id)) continue
        box.remove()
        boxes.delete(id)
      }
      drawLedgers()
    },
  }
}
