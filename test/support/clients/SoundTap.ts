// What a page plays, sample by sample, without a sound card: the page's own schedule, played once more by the browser as fast as it
// can. Listening beside the destination would lose blocks on a machine that is too slow for them.
import type { Page } from "playwright-core"

/**
 * Runs in the page before its own scripts. Keeps every sound that is started towards a destination, with the time when it begins: a
 * sound that is started too late begins at once, as the browser does it. Sounds that are stopped again are kept whole.
 */
const script = `(() => {
  const started = []
  const next = new Map()
  const connect = AudioNode.prototype.connect
  AudioNode.prototype.connect = function (to, ...rest) {
    next.set(this, to)
    return connect.call(this, to, ...rest)
  }
  const isHeard = (node) => node !== undefined && (node instanceof AudioDestinationNode || isHeard(next.get(node)))
  const start = AudioBufferSourceNode.prototype.start
  AudioBufferSourceNode.prototype.start = function (when = 0, ...rest) {
    if (this.context instanceof AudioContext && isHeard(this))
      started.push({ buffer: this.buffer, at: Math.max(when, this.context.currentTime), rateHz: this.context.sampleRate })
    return start.call(this, when, ...rest)
  }
  globalThis.forgetSounds = () => void started.splice(0)
  globalThis.heardSamples = async () => {
    if (started.length === 0) return []
    const { rateHz } = started[0]
    const end = Math.max(...started.map(({ at, buffer }) => at + buffer.duration))
    const offline = new OfflineAudioContext(1, Math.ceil(end * rateHz), rateHz)
    for (const { at, buffer } of started) {
      const source = offline.createBufferSource()
      source.buffer = buffer
      connect.call(source, offline.destination)
      start.call(source, at)
    }
    return Array.from((await offline.startRendering()).getChannelData(0))
  }
})()`

export const tapSound = (page: Page): Promise<unknown> => page.addInitScript({ content: script })

/** The samples that were played so far, from the first one that is not 0. */
export const heardSamples = async (page: Page): Promise<Float32Array> => {
  const all = Float32Array.from((await page.evaluate("heardSamples()")) as Array<number>)
  const first = all.findIndex((sample) => sample !== 0)
  return first < 0 ? new Float32Array(0) : all.subarray(first)
}

/** Forgets what was played. */
export const forgetSound = (page: Page): Promise<unknown> => page.evaluate("forgetSounds()")
