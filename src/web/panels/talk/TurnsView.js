// The turns of a conversation on the page: each is drawn once and then changed, so that reading and selecting it is not disturbed.
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

  /** @param {import("../../talk/Conversation.js").Turn} turn */
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

  return {
    clear: () => {
      boxes.clear()
      log.replaceChildren()
      said.replaceChildren()
    },
    /** @param {ReadonlyArray<import("../../talk/Conversation.js").Turn>} turns */
    show: (turns) => {
      for (const turn of turns) {
        const made = boxOf(turn)
        const { box, ledger, note, text } = made
        const shown = turn.text === "" && turn.isOpen ? "…" : turn.text
        if (text.textContent !== shown) {
          text.textContent = shown
          box.scrollIntoView({ block: "nearest" })
        }
        note.textContent = turn.isCut ? "interrupted here" : ""
        note.hidden = !turn.isCut
        const marks = turn.ledger === undefined ? "" : JSON.stringify([turn.ledger.marks, turn.ledger.onNode])
        if (turn.ledger !== undefined && marks !== made.drawn) {
          made.drawn = marks
          ledger.replaceChildren(ledgerView(turn.ledger))
        }
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
    },
  }
}
