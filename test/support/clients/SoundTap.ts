// Records what a page plays: every sample that reaches the sound card, also where there is none.
import type { Page } from "playwright-core"

/**
 * Runs in the page before its own scripts: a ScriptProcessorNode listens beside each destination. Its blocks of 16,384
 * samples leave a slow machine 0.7 s for each. A context is closed 2 s late, so that the last block is complete.
 */
const script = `(() => {
  const blocks = []
  globalThis.heardBlocks = blocks
  const connect = AudioNode.prototype.connect
  AudioNode.prototype.connect = function (to, ...rest) {
    if (to instanceof AudioDestinationNode && this.context instanceof AudioContext) {
      const tap = this.context.createScriptProcessor(16384, 1, 1)
      tap.onaudioprocess = ({ inputBuffer }) => blocks.push(inputBuffer.getChannelData(0).slice())
      connect.call(this, tap)
      connect.call(tap, to)
    }
    return connect.call(this, to, ...rest)
  }
  const close = AudioContext.prototype.close
  AudioContext.prototype.close = function () {
    return new Promise((done) => setTimeout(() => done(this.state === "closed" ? undefined : close.call(this)), 2_000))
  }
})()`

export const tapSound = (page: Page): Promise<unknown> => page.addInitScript({ content: script })

/** The samples that were played so far, from the first one that is not 0. */
export const heardSamples = async (page: Page): Promise<Float32Array> => {
  const blocks = (await page.evaluate("heardBlocks.map((block) => Array.from(block))")) as Array<
    Array<number>
  >
  const all = Float32Array.from(blocks.flat())
  const first = all.findIndex((sample) => sample !== 0)
  return first < 0 ? new Float32Array(0) : all.subarray(first)
}

/** Forgets what was played. */
export const forgetSound = (page: Page): Promise<unknown> => page.evaluate("heardBlocks.splice(0)")
