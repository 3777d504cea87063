// The caption of a live transcription, computed from the node's events (docs/live.md). Pure.

/**
 * @typedef {object} Caption
 * @property {string} text the whole caption
 * @property {number} stableChars how many characters (Unicode code points) at its beginning will not change again
 * @property {number} audioMs how much audio it covers
 * @property {boolean} isFinal whether this is the final result
 * @property {ReadonlyArray<{ audioMs: number, text: string }>} history the captions so far; one for each `rev`
 */

/** @type {Caption} */
export const noCaption = { text: "", stableChars: 0, audioMs: 0, isFinal: false, history: [] }

/**
 * The caption after an event. Events that are no part of it (warnings, speech events) change nothing.
 * @param {Caption} caption
 * @param {Record<string, any>} event
 * @returns {Caption}
 */
export const captionAfter = (caption, event) => {
  if (event.type === "transcript.text.done") {
    // As the node charges it: rounded up to a whole millisecond (protocol 5.3).
    const audioMs = Math.ceil(Number((event.duration * 1000).toFixed(3)))
    const { text } = event
    const history = [...caption.history, { audioMs, text }]
    return { text, stableChars: [...text].length, audioMs, isFinal: true, history }
  }
  if (event.type !== "transcript.text.delta") return caption
  const text = event.op === "append" ? caption.text + event.delta : event.delta
  const history = [...caption.history, { audioMs: event.audio_ms, text }]
  return { text, stableChars: event.stable_chars, audioMs: event.audio_ms, isFinal: false, history }
}

/**
 * A caption in two parts. `stable_chars` counts code points, so a text cannot simply be cut at that index.
 * @param {Caption} caption
 * @returns {{ firm: string, soft: string }} what stays, and what may still change
 */
export const partsOf = ({ stableChars, text }) => {
  const characters = [...text]
  return { firm: characters.slice(0, stableChars).join(""), soft: characters.slice(stableChars).join("") }
}
