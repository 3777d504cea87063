// Draws where the time of an answer went: a bar for each step, from the end of the user's turn.
import { h, svg } from "../../page/Elements.js"

const width = 420
const row = 20
const left = 84
const right = 62

/**
 * @param {import("../../talk/Ledger.js").Ledger} ledger
 * @returns {HTMLElement}
 */
export const ledgerView = (ledger) => {
  const { marks, onNode } = ledger
  const longest = Math.max(1, ...marks.map(({ atMs }) => atMs))
  const told = marks.map(({ atMs, name }) => `${name} after ${Math.round(atMs)} ms`).join(", ")
  const bars = marks.flatMap(({ atMs, name }, at) => {
    const length = Math.max(2, (atMs / longest) * (width - left - right))
    return [
      svg("text", { x: left - 8, y: at * row + 14, class: "tick row" }, name),
      svg("rect", { x: left, y: at * row + 4, width: length, height: row - 8, rx: 3, class: "bar" }),
      svg(
        "text",
        { x: left + length + 6, y: at * row + 14, class: "tick bar-end" },
        `${Math.round(atMs)} ms`,
      ),
    ]
  })
  const drawing = svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${marks.length * row}`,
      role: "img",
      "aria-label": `After the end of your turn: ${told}.`,
    },
    ...bars,
  )
  return h("figure", { class: "chart ledger" }, drawing, h("figcaption", {}, h("span", {}, onNode)))
}
