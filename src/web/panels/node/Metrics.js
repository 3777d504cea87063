// Reads what the panel shows from the text of `GET /metrics`, which needs no operator's key. Pure.

/**
 * @typedef {object} ModelMetrics
 * @property {number} [residentBytes]
 * @property {number} [slots]
 * @property {number} [busy]
 * @property {number} [waiting]
 * @property {number} [restarts]
 */

/** The series that are read, and the field that each becomes. */
const fields = /** @type {const} */ ({
  edgewise_engine_resident_bytes: "residentBytes",
  edgewise_slots: "slots",
  edgewise_slots_busy: "busy",
  edgewise_requests_waiting: "waiting",
  edgewise_engine_restarts_total: "restarts",
})

/**
 * @param {string} text in Prometheus' format
 * @returns {{ models: Map<string, ModelMetrics>, budgetBytes: number | undefined, claimedBytes: number | undefined }}
 */
export const modelMetrics = (text) => {
  /** @type {Map<string, ModelMetrics>} */
  const models = new Map()
  /** @type {Map<string, number>} */
  const plain = new Map()
  for (const line of text.split("\n")) {
    const [, name = "", , label, value] =
      /^(\w+)(\{model="((?:[^"\\]|\\.)*)"\})? ([-+\d.eE]+)$/.exec(line) ?? []
    if (value === undefined) continue
    if (label === undefined) plain.set(name, Number(value))
    const field = fields[/** @type {keyof typeof fields} */ (name)]
    if (label === undefined || field === undefined) continue
    const model = models.get(label) ?? {}
    model[field] = Number(value)
    models.set(label, model)
  }
  return {
    models,
    budgetBytes: plain.get("edgewise_memory_budget_bytes"),
    claimedBytes: plain.get("edgewise_memory_claimed_bytes"),
  }
}

/** @param {number} bytes */
export const bytesText = (bytes) =>
  bytes < 1e9 ? `${Math.round(bytes / 1e6)} MB` : `${(bytes / 1e9).toFixed(2)} GB`
