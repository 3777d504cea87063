// A drawing of a stream's pieces: when each came, and when it was due, both against the seconds of audio so far. The area
// between the lines is the audio that waited; where they touch, the player ran dry.
import { onWidth } from "../../page/Drawing.js"
import { h, svg } from "../../page/Elements.js"

/** Pixels of the page, as all sizes here: the drawing is as wide as its place. */
const height = 180
const left = 44
/** Half of the last label stands here. */
const right = 18
/** The least room for a label and the space beside it. */
const labelWidth = 56
const bottom = 26
const top = 10

/**
 * @param {import("../../voice/audio/JitterBuffer.js").PlayedPiece} piece
 * @param {number} began
 */
const atOf = ({ arrived, start }, began) => ({ came: arrived - began, due: start - began })

/** @param {number} seconds @param {number} most labels */
const niceStep = (seconds, most) =>
  [0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300].find((step) => seconds / step <= most) ?? 600

/** @typedef {ReadonlyArray<import("../../voice/audio/JitterBuffer.js").PlayedPiece>} Pieces */

/**
 * @param {HTMLElement} figure
 * @param {number} width
 * @param {Pieces} pieces at least one
 * @param {number} began
 * @param {number} margin
 */
const drawChart = (figure, width, pieces, began, margin) => {
  const last = pieces[pieces.length - 1]
  const end = last === undefined ? 1 : last.start + last.seconds - began
  const total = pieces.reduce((sum, { seconds }) => sum + seconds, 0)
  const x = (/** @type {number} */ seconds) => left + (seconds / end) * (width - left - right)
  const y = (/** @type {number} */ seconds) => height - bottom - (seconds / total) * (height - bottom - top)

  let audio = 0
  let came = `M${x(0)} ${y(0)}`
  let due = ""
  /** @type {Array<Node>} */
  const dots = []
  for (const piece of pieces) {
    const at = atOf(piece, began)
    came += `H${x(at.came)}V${y(audio + piece.seconds)}`
    due += `${due === "" ? "M" : "L"}${x(at.due)} ${y(audio)}L${x(at.due + piece.seconds)} ${y(audio + piece.seconds)}`
    if (piece.silence > 0) dots.push(svg("circle", { cx: x(at.due), cy: y(audio), r: 4, class: "late" }))
    audio += piece.seconds
  }
  came += `H${x(end)}`

  const step = niceStep(end, (width - left - right) / labelWidth)
  const marks = Array.from({ length: Math.floor(end / step) + 1 }, (_, at) => at * step)
  const digits = step < 1 ? 1 : 0
  const ticks = marks.map((at) =>
    svg("text", { x: x(at), y: height - 8, class: "tick" }, `${at.toFixed(digits)} s`),
  )
  const rule = niceStep(total, 6)
  const rows = Array.from({ length: Math.floor(total / rule) + 1 }, (_, at) => at * rule)
  const lines = rows.flatMap((at) => [
    svg("path", { d: `M${left} ${y(at)}H${width - right}`, class: "grid" }),
    svg("text", { x: left - 6, y: y(at) + 4, class: "tick row" }, `${at.toFixed(rule < 1 ? 1 : 0)} s`),
  ])
  const late = pieces.filter(({ silence }) => silence > 0).length
  const early =
    pieces.length < 2
      ? ""
      : ` The tightest came ${Math.round(Math.abs(margin) * 1000)} ms ${margin < 0 ? "after" : "before"} it was due.`
  const told = `${pieces.length} pieces, ${total.toFixed(1)} s of speech, ${late === 0 ? "none too late" : `${late} too late`}.${early}`
  figure.replaceChildren(
    svg(
      "svg",
      {
        viewBox: `0 0 ${width} ${height}`,
        role: "img",
        "aria-label": `When audio came and when it was due. ${told}`,
      },
      ...lines,
      ...ticks,
      svg("path", { d: came, class: "came" }),
      svg("path", { d: due, class: "due" }),
      ...dots,
    ),
    h(
      "figcaption",
      {},
      h("span", { class: "key came" }, "came"),
      h("span", { class: "key due" }, "due"),
      h("span", {}, told),
    ),
  )
}

/** @param {HTMLElement} figure */
export const makeChart = (figure) => {
  /** @type {{ pieces: Pieces, began: number, margin: number } | undefined} */
  let last
  let width = 0
  const redraw = () => {
    if (last === undefined || last.pieces.length === 0) return figure.replaceChildren()
    // A card that has just been shown tells its width a moment later.
    if (width > 0) drawChart(figure, width, last.pieces, last.began, last.margin)
  }
  onWidth(figure, (now) => {
    width = now
    redraw()
  })
  return {
    /**
     * @param {Pieces} pieces
     * @param {number} began when the request was sent, on the clock of the pieces
     * @param {number} margin seconds by which the tightest piece was early
     */
    draw: (pieces, began, margin) => {
      last = { pieces, began, margin }
      redraw()
    },
    clear: () => {
      last = undefined
      redraw()
    },
    isEmpty: () => last === undefined || last.pieces.length === 0,
  }
}
