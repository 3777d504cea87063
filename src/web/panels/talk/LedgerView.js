// A drawing of where one answer's time went: from the end of the speech through the silence that ended the turn to the first
// sound. All answers of a conversation have the same scale.
import { h, svg } from "../../page/Elements.js"

const row = 20
const left = 84
const right = 62
/** A wider drawing is not easier to read, pixels. */
const widest = 416

/**
 * @param {import("../../voice/talk/Ledger.js").Ledger} ledger
 * @param {{ readonly place: number, readonly longestMs: number }} room the width of the place in pixels, and the longest time of
 *   all answers
 * @returns {HTMLElement}
 */
export const ledgerView = (ledger, { longestMs, place }) => {
  const { marks, onNode, silenceMs } = ledger
  const width = Math.min(widest, Math.max(place, left + right + 40))
  const x = (/** @type {number} */ ms) => (ms / Math.max(1, longestMs)) * (width - left - right)
  const rows = [
    { name: "silence", from: 0, to: silenceMs, kind: "bar silence" },
    ...marks.map(({ atMs, name }) => ({ name, from: silenceMs, to: silenceMs + atMs, kind: "bar" })),
  ]
  const told = rows.map(({ name, to }) => `${name} ${Math.round(to)} ms`).join(", ")
  const bars = rows.flatMap(({ from, kind, name, to }, at) => [
    svg("text", { x: left - 8, y: at * row + 14, class: "tick row" }, name),
    svg("rect", {
      x: left + x(from),
      y: at * row + 4,
      width: Math.max(2, x(to - from)),
      height: row - 8,
      rx: 3,
      class: kind,
    }),
    svg(
      "text",
      { x: left + x(from) + Math.max(2, x(to - from)) + 6, y: at * row + 14, class: "tick bar-end" },
      `${Math.round(to)} ms`,
    ),
  ])
  const drawing = svg(
    "svg",
    {
      viewBox: `0 0 ${width} ${rows.length * row}`,
      width,
      role: "img",
      "aria-label": `After the end of your speech: ${told}.`,
    },
    ...bars,
  )
  return h("figure", { class: "chart ledger" }, drawing, h("figcaption", {}, h("span", {}, onNode)))
}
