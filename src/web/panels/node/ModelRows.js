// The models of the node: state, memory, streams, queue, why one failed, and buttons to load and unload.
import { h } from "../../page/Elements.js"
import { bytesText } from "./Metrics.js"

/**
 * @typedef {object} ModelRow
 * @property {string} id
 * @property {string} kind
 * @property {string} about what it is: a demonstration, and its size; its owner where neither is known
 * @property {string} state
 * @property {string | undefined} failure
 * @property {import("./Metrics.js").ModelMetrics} metrics
 */

/** A model that is not loaded has no process, so what is left of its numbers says nothing. @param {ModelRow} row */
const factsOf = ({ about, metrics: all, state }) => {
  /** @type {import("./Metrics.js").ModelMetrics} */
  const metrics = state === "unloaded" || state === "failed" ? {} : all
  return [
    about,
    metrics.residentBytes === undefined ? "" : bytesText(metrics.residentBytes),
    metrics.slots === undefined ? "" : `${metrics.busy ?? 0} of ${metrics.slots} streams`,
    metrics.waiting === undefined ? "" : `${metrics.waiting} in the queue`,
    (all.restarts ?? 0) === 0 ? "" : `${all.restarts} restarts`,
  ].filter((text) => text !== "")
}

/**
 * Rows are changed in place, so that a refresh does not take the focus from a button.
 * @param {HTMLElement} list
 * @param {(action: "load" | "unload", id: string) => void} act
 */
export const makeModelRows = (list, act) => {
  /** @type {Map<string, { view: HTMLElement, update: (row: ModelRow, mayAct: boolean, isBusy: boolean) => void }>} */
  const rows = new Map()

  /** @param {string} id */
  const rowOf = (id) => {
    const known = rows.get(id)
    if (known !== undefined) return known
    const kind = h("span", { class: "quiet-note" })
    const state = h("span", { class: "state" })
    const facts = h("div", { class: "model-facts" })
    const failure = h("div", { class: "field-problem" })
    const button = h("button", { type: "button" })
    /** @type {"load" | "unload"} */
    let action = "load"
    button.addEventListener("click", () => act(action, id))
    const view = h(
      "li",
      {},
      h("div", { class: "model-name" }, h("strong", {}, id), " ", kind),
      state,
      facts,
      button,
      failure,
    )
    const made = {
      view,
      /** @param {ModelRow} row @param {boolean} mayAct @param {boolean} isBusy */
      update: (row, mayAct, isBusy) => {
        kind.textContent = row.kind
        state.textContent = row.state
        state.dataset.state = row.state
        facts.replaceChildren(...factsOf(row).map((text) => h("span", {}, text)))
        failure.textContent = row.failure ?? ""
        action = row.state === "loaded" || row.state === "loading" ? "unload" : "load"
        button.textContent = isBusy ? "…" : action === "load" ? "Load" : "Unload"
        button.setAttribute("aria-label", `${action === "load" ? "Load" : "Unload"} ${id}`)
        button.disabled = isBusy || !mayAct
        if (mayAct) button.removeAttribute("aria-describedby")
        else button.setAttribute("aria-describedby", "node-scope")
      },
    }
    rows.set(id, made)
    return made
  }

  return {
    /**
     * @param {ReadonlyArray<ModelRow>} models
     * @param {boolean} mayAct
     * @param {ReadonlySet<string>} busy ids of models that are being loaded or unloaded from here
     */
    show: (models, mayAct, busy) => {
      const views = models.map((model) => {
        const row = rowOf(model.id)
        row.update(model, mayAct, busy.has(model.id))
        return row.view
      })
      const isSame =
        views.length === list.children.length && views.every((view, at) => list.children[at] === view)
      if (!isSame) list.replaceChildren(...views)
    },
  }
}
