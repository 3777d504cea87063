// A receipt under an answer: queue, first unit, total, price.
import { dollars, duration, priceOf } from "../api/Receipts.js"
import { h } from "./Elements.js"

/**
 * Shows a receipt at once, and its price as soon as the node has it.
 * @param {import("../api/Client.js").Client} client
 * @param {import("../api/Receipts.js").Receipt} receipt
 * @param {import("../api/Receipts.js").WhichReceipt | undefined} which undefined where the node charges nothing
 * @returns {HTMLElement}
 */
export const receiptView = (client, receipt, which) => {
  const price = h("dd", { class: "price" }, which === undefined ? "–" : "…")
  const entry = (/** @type {string} */ name, /** @type {HTMLElement} */ value) =>
    h("div", {}, h("dt", {}, name), value)
  const view = h(
    "dl",
    { class: "receipt", "aria-label": "Receipt" },
    entry("queue", h("dd", {}, duration(receipt.queueMs))),
    entry(`first ${receipt.firstUnit}`, h("dd", {}, duration(receipt.firstMs))),
    entry("total", h("dd", {}, duration(receipt.totalMs))),
    entry("price", price),
  )
  if (receipt.note !== undefined)
    view.append(h("div", { class: "note" }, h("dt", {}, "made"), h("dd", {}, receipt.note)))
  if (which !== undefined) {
    if (typeof which === "string") view.title = which
    priceOf(client, which).then((paid) => {
      price.textContent = paid === undefined ? "unknown" : dollars(paid)
    })
  }
  return view
}
