// A WebRTC call to the node, with the parts of a WebSocket that a conversation uses: its events go over a data channel. The sound goes beside
// them: the microphone's to the node, and what the node says to the loudspeaker, both by the browser.

/** Longer than this a call does not take to be connected, milliseconds: then UDP does not pass. A guess; browsers take 0.1 to 0.5 s. */
const openMs = 4_000

/** How a WebSocket closes that is lost. */
const lost = { code: 1006, reason: "" }

export class Call {
  onopen = () => {}
  /** @type {(event: { data: any }) => void} */
  onmessage = () => {}
  /** @type {(event: { code: number, reason: string }) => void} */
  onclose = () => {}
  #peer
  #channel
  #sound = new Audio()
  #isClosed = false

  /** @param {MediaStream} microphone */
  constructor(microphone) {
    this.#peer = new RTCPeerConnection()
    for (const track of microphone.getAudioTracks()) this.#peer.addTrack(track, microphone)
    this.#channel = this.#peer.createDataChannel("oai-events")
    this.#peer.ontrack = ({ streams: [stream = null] }) => {
      this.#sound.srcObject = stream
      // It was allowed by the click that began the conversation.
      this.#sound.play().catch(() => {})
    }
    this.#peer.onconnectionstatechange = () => {
      if (this.#peer.connectionState === "failed") this.#end()
    }
    this.#channel.onmessage = ({ data }) => this.onmessage({ data })
    this.#channel.onclose = () => this.#end()
  }

  /**
   * Fulfilled when the call is connected. Fails where the node takes no calls, or is not reached by UDP.
   * @param {(offer: string) => Promise<string>} exchange sends an offer to the node, and gives its answer
   */
  async connect(exchange) {
    const opened = new Promise((resolve, reject) => {
      this.#channel.onopen = resolve
      setTimeout(() => reject(new Error("the call was not connected")), openMs)
    })
    opened.catch(() => {})
    try {
      await this.#peer.setLocalDescription(await this.#peer.createOffer())
      const sdp = await exchange(this.#peer.localDescription?.sdp ?? "")
      await this.#peer.setRemoteDescription({ type: "answer", sdp })
      await opened
    } catch (error) {
      this.close()
      throw error
    }
  }

  get readyState() {
    return this.#channel.readyState === "open" ? WebSocket.OPEN : WebSocket.CONNECTING
  }

  /** @param {string} data */
  send(data) {
    this.#channel.send(data)
  }

  /** @param {number} [_code] of a WebSocket */
  close(_code) {
    this.#end()
  }

  #end() {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#sound.srcObject = null
    this.#peer.close()
    this.onclose(lost)
  }
}
