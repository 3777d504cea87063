// What all panels know about the node: its models, what is loaded, and whose key this is.

/**
 * @typedef {object} ModelInfo
 * @property {string} id
 * @property {"text" | "embedding" | "speech" | "transcription" | "detection" | "conversation"} kind
 * @property {string} owned_by
 * @property {ReadonlyArray<string>} [input_modalities]
 * @property {number} [parameters]
 */

/**
 * @typedef {object} UsageInfo
 * @property {string} organization
 * @property {string} user
 * @property {"read-write" | "superadmin"} scope
 * @property {number} balance_micro_dollars
 * @property {boolean} payment_method
 * @property {ReadonlyArray<{ receipt_id: string, created: number, model: string, kind: string, input_tokens: number, output_tokens: number, audio_ms: number, micro_dollars: number }>} receipts
 */

/** The owner that the built-in catalog names for its demonstration weights (protocol 6.1). */
const builtInOwner = "edgewise-demo"

/**
 * A model's size in words.
 * @param {number | undefined} parameters
 */
export const sizeText = (parameters) => {
  if (parameters === undefined) return ""
  const units = /** @type {const} */ ([
    [1e9, "billion"],
    [1e6, "million"],
    [1e3, "thousand"],
  ])
  const [unit, name] = units.find(([each]) => parameters >= each) ?? units[2]
  return `${Number((parameters / unit).toFixed(1))} ${name} parameters`
}

/** Fires `change` after each refresh. */
export class NodeInfo extends EventTarget {
  /** @type {ReadonlyArray<ModelInfo>} */
  models = []
  /** @type {UsageInfo | undefined} */
  usage
  /** @type {unknown} the failure of the last refresh */
  failure

  /** @param {import("./Client.js").Client} client */
  constructor(client) {
    super()
    this.client = client
  }

  async refresh() {
    this.failure = undefined
    if (this.client.key() === "") {
      this.models = []
      this.usage = undefined
    } else {
      try {
        const [list, usage] = await Promise.all([
          this.client.json("/v1/models"),
          this.client.json("/v1/usage"),
        ])
        this.models = list.data
        this.usage = usage
      } catch (error) {
        this.failure = error
        this.models = []
        this.usage = undefined
      }
    }
    this.dispatchEvent(new Event("change"))
  }

  /** The models that an engine runs: a conversation only joins them. */
  get engines() {
    return this.models.filter(({ kind }) => kind !== "conversation")
  }

  /** @param {ModelInfo["kind"]} kind */
  ofKind(kind) {
    return this.models.filter((model) => model.kind === kind)
  }

  /** @param {string} id */
  find(id) {
    return this.models.find((model) => model.id === id)
  }

  /** @param {string} id */
  isBuiltIn(id) {
    return this.find(id)?.owned_by === builtInOwner
  }

  /**
   * What a reader of its answers should know of a model: that it is a demonstration, and how large it is.
   * @param {string} id
   */
  about(id) {
    const size = sizeText(this.find(id)?.parameters)
    const words = [this.isBuiltIn(id) ? "demonstration model" : "", size]
    return words.filter((text) => text !== "").join(", ")
  }

  get isOperator() {
    return this.usage?.scope === "superadmin"
  }
}
