// Below a list of models: what a reader of the chosen one's answers should know of it.
import { byId } from "./Elements.js"

/**
 * @param {HTMLSelectElement} select its note has the same id with `-about` behind it
 * @param {import("../api/NodeInfo.js").NodeInfo} node
 */
export const makeModelAbout = (select, node) => {
  const note = byId(`${select.id}-about`, HTMLElement)
  const show = () => {
    note.textContent = node.about(select.value)
  }
  select.addEventListener("input", show)
  return { show }
}
