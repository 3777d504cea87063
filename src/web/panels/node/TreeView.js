// The supervision tree as nested lists. A part that was unfolded stays so over a refresh.
import { h } from "../../page/Elements.js"
import { bytesText } from "./Metrics.js"

/**
 * @typedef {object} TreeNode a node of `GET /v1/node/tree` (protocol 12.11)
 * @property {string} name
 * @property {string} kind
 * @property {string} state
 * @property {number} age_seconds
 * @property {number} restarts
 * @property {{ depth: number, bound: number } | null} mailbox
 * @property {{ memory_bytes?: number, threads?: number, sessions?: number, requests?: number }} holds
 * @property {ReadonlyArray<{ name: string, reason: string, recovered: boolean }>} gave_up
 * @property {number} children_total
 * @property {ReadonlyArray<TreeNode>} children
 */

/** @param {number} seconds */
const age = (seconds) => {
  if (seconds < 60) return `${Math.round(seconds)} s`
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`
  return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`
}

/** @param {TreeNode} node */
const factsOf = ({ age_seconds, children, children_total, gave_up, holds, mailbox, restarts }) =>
  [
    age(age_seconds),
    restarts === 0 ? "" : `${restarts} restarts`,
    mailbox === null || mailbox.depth === 0 ? "" : `${mailbox.depth} of ${mailbox.bound} wait`,
    holds.memory_bytes === undefined || holds.memory_bytes === 0 ? "" : bytesText(holds.memory_bytes),
    holds.requests === undefined || holds.requests === 0 ? "" : `${holds.requests} requests`,
    holds.sessions === undefined || holds.sessions === 0 ? "" : `${holds.sessions} sessions`,
    ...gave_up.filter(({ recovered }) => !recovered).map(({ name, reason }) => `${name} gave up: ${reason}`),
    children_total > children.length ? `${children.length} of ${children_total} shown` : "",
  ].filter((text) => text !== "")

/** Depth to which the tree is unfolded at first. */
const openDepth = 2

/** @param {HTMLElement} place */
export const makeTree = (place) => {
  /** @type {Map<string, boolean>} */
  const unfolded = new Map()

  /**
   * @param {TreeNode} node
   * @param {string} path
   * @param {number} depth
   * @returns {HTMLElement}
   */
  const viewOf = (node, path, depth) => {
    const here = `${path}/${node.name}`
    const line = [
      h("span", { class: "dot", "data-state": node.state }),
      h("span", {}, node.name),
      h("span", { class: "quiet-note" }, [node.state, ...factsOf(node)].join(" · ")),
    ]
    if (node.children.length === 0) return h("li", {}, h("div", { class: "leaf" }, ...line))
    const details = h("details", {}, h("summary", {}, ...line))
    details.open = unfolded.get(here) ?? depth < openDepth
    details.addEventListener("toggle", () => unfolded.set(here, details.open))
    details.append(h("ul", {}, ...node.children.map((child) => viewOf(child, here, depth + 1))))
    return h("li", {}, details)
  }

  let last = ""
  return {
    /** @param {TreeNode} tree */
    show: (tree) => {
      // Ages change with every answer; a tree that is otherwise the same keeps its elements, and with them the focus.
      const shape = JSON.stringify(tree, (name, value) =>
        name === "age_seconds" || name === "seconds_ago" ? undefined : value,
      )
      if (shape === last) return
      last = shape
      const focused = document.activeElement instanceof HTMLElement && place.contains(document.activeElement)
      if (focused && last !== "") return
      place.replaceChildren(h("ul", {}, viewOf(tree, "", 0)))
    },
    clear: () => {
      last = ""
      place.replaceChildren()
    },
  }
}
