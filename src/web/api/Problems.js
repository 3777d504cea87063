// Failures as one sentence each that says what to do.
import { NodeGone, Refusal } from "./Client.js"
import { StreamCut } from "./Events.js"

/** A failure whose message already is such a sentence. */
export class Problem extends Error {
  /** @param {string} sentence */
  constructor(sentence) {
    super(sentence)
    this.name = "Problem"
  }
}

export const insecurePage =
  "The browser gives a microphone only to pages on localhost or HTTPS: open the node as http://localhost, or give it a certificate (EDGEWISE_TLS_CERT)."

const soon = (/** @type {number | undefined} */ seconds) =>
  seconds === undefined ? "try again in a moment" : `try again in ${seconds} s`

/**
 * @param {Refusal} refusal
 * @returns {string}
 */
const sentenceOfRefusal = ({ message, retryAfterSeconds, status }) => {
  switch (status) {
    case 401:
      return `The node refused the key (${message}): paste the one that its start printed, or make one with "edgewise keys create --org NAME".`
    case 402:
      return 'The organization has no credit left: "edgewise orgs credit NAME 10" adds 10 USD.'
    case 403:
      return 'This needs a key with the superadmin scope: "edgewise keys create --org ops --scope superadmin" makes one.'
    case 404:
      return `${message}: choose another model, or load this one on the Node panel.`
    case 429:
      return `Too many requests with this key: ${soon(retryAfterSeconds)}.`
    case 503:
      return `${message}: ${soon(retryAfterSeconds)}.`
    default:
      return status >= 500
        ? `The node failed (${status}, ${message}): try again; its log has the reason.`
        : `The node refused the request: ${message}.`
  }
}

/** By the names of errors: what browsers call the failures of `getUserMedia`, and those of src/web/audio. */
const soundSentences = new Map([
  [
    "PlaybackBlocked",
    "The browser blocked the sound: press Play again, or allow sound beside the page's address.",
  ],
  [
    "NotAllowedError",
    "The browser was not allowed to use the microphone: allow it beside the page's address, then start again.",
  ],
  ["NotFoundError", "No microphone was found: connect one and start again, or choose a file."],
  ["NotReadableError", "The microphone is used by another program: close that program, then start again."],
  [
    "OverconstrainedError",
    "The microphone cannot record speech: choose another one in the system's settings.",
  ],
])

/**
 * @param {unknown} error
 * @returns {string}
 */
export const sentenceOf = (error) => {
  if (error instanceof Problem) return error.message
  if (error instanceof Refusal) return sentenceOfRefusal(error)
  if (error instanceof NodeGone) return "The node does not answer: check that it runs, then try again."
  if (error instanceof StreamCut)
    return "The connection ended in the middle: what came so far is shown; check that the node runs, then try again."
  const name = error instanceof Error ? error.name : ""
  if (name === "InsecurePage") return insecurePage
  return (
    soundSentences.get(name) ?? `Something failed in this page: ${String(error)}. Reload it and try again.`
  )
}

/**
 * Whether a failure is only that the user pressed Stop.
 * @param {unknown} error
 */
export const isAbort = (error) => error instanceof Error && error.name === "AbortError"
