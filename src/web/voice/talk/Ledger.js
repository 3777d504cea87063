// Where the time of one answer went, as this client saw it: from the end of the user's turn to the first sound. Pure; the caller passes
// the time.

/** @typedef {"understood" | "words" | "sound"} Step */

/** @typedef {{ name: string, atMs: number }} Mark */

/** What is drawn for each step, in this order. @type {ReadonlyArray<readonly [Step, string]>} */
const steps = [
  ["understood", "understood"],
  ["words", "first words"],
  ["sound", "first sound"],
]

/** Fields of the node's own event (protocol 19.3), and their names. @type {ReadonlyArray<readonly [string, string]>} */
const nodeSteps = [
  ["silence_ms", "silence"],
  ["transcript_ms", "transcript"],
  ["first_token_ms", "first token"],
  ["first_clause_ms", "first clause"],
  ["first_samples_ms", "speech"],
  ["first_sent_ms", "sent"],
]

export class Ledger {
  #endedMs
  /** @type {Map<Step, number>} */
  #times = new Map()
  /** @type {Record<string, any> | undefined} */
  #node

  /** @param {number} endedMs when the user's turn ended */
  constructor(endedMs) {
    this.#endedMs = endedMs
  }

  /** The first time of a step counts. @param {Step} step @param {number} nowMs */
  reached(step, nowMs) {
    if (!this.#times.has(step)) this.#times.set(step, nowMs)
  }

  /** What the node says about its own times. @param {Record<string, any>} event */
  told(event) {
    this.#node = event
  }

  /** Milliseconds after the end of the user's turn. @returns {ReadonlyArray<Mark>} */
  get marks() {
    return steps.flatMap(([step, name]) => {
      const at = this.#times.get(step)
      return at === undefined ? [] : [{ name, atMs: Math.max(0, at - this.#endedMs) }]
    })
  }

  /**
   * Milliseconds from the last speech to the end of the turn, as the node tells them; 0 where the user ended the turn by hand, and
   * before the node has told them.
   */
  get silenceMs() {
    const told = this.#node?.silence_ms
    return typeof told === "number" ? told : 0
  }

  /** Milliseconds from the last speech to the last step. */
  get longestMs() {
    return this.silenceMs + Math.max(0, ...this.marks.map(({ atMs }) => atMs))
  }

  /** The node's own times as one sentence; empty where it told none. */
  get onNode() {
    const node = this.#node
    if (node === undefined) return ""
    const parts = nodeSteps.flatMap(([field, name]) =>
      typeof node[field] === "number" ? [`${name} ${Math.round(node[field])} ms`] : [],
    )
    const prepared = node.prepared === true ? "Prepared during the silence. " : ""
    return `${prepared}On the node: ${parts.join(", ")}.`
  }
}
