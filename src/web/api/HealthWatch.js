// Reads the node's health again and again: what it is, whether the node answers at all, and which version it has.

/** Between two readings, milliseconds. */
const readEveryMs = 15_000
/** The same while the node does not answer: the page goes on soon after it is back. */
const gonePauseMs = 2_000

/** @typedef {"unknown" | "healthy" | "degraded" | "unhealthy" | "gone"} HealthState */

/** Fires `change` where the state or the version changed, and `back` where the node answers again. */
export class HealthWatch extends EventTarget {
  /** @type {HealthState} `gone`: the node does not answer */
  state = "unknown"
  /** The version that the node had first, and the one that it has now; empty while they are not known. */
  versions = { first: "", now: "" }
  /** Whether the node takes WebRTC calls. */
  takesCalls = false
  #client
  /** @type {ReturnType<typeof setTimeout> | undefined} */
  #timer

  /** @param {import("./Client.js").Client} client */
  constructor(client) {
    super()
    this.#client = client
  }

  /** Reads the health now, and from then on again and again. */
  async start() {
    clearTimeout(this.#timer)
    if (!document.hidden) await this.#read()
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.start(), this.state === "gone" ? gonePauseMs : readEveryMs)
  }

  async #read() {
    const { state: before, versions } = this
    const versionBefore = versions.now
    try {
      // An unhealthy node answers 503 with the same record.
      const record = await (await fetch(this.#client.url("/health"))).json()
      this.state = record.status
      this.takesCalls = record.features?.webrtc_calls === true
      const [, version = ""] = /^edgewise\/(\S+)/.exec(record.runtime) ?? []
      versions.first ||= version
      versions.now = version
    } catch {
      this.state = "gone"
    }
    if (this.state !== before || versions.now !== versionBefore) this.dispatchEvent(new Event("change"))
    if (before === "gone" && this.state !== "gone") this.dispatchEvent(new Event("back"))
  }
}
