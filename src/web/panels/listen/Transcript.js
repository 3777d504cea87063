// The result card of the panel Listen: text with a firm and a soft part, how it goes, downloads.
import { byId, offerFile } from "../../page/Elements.js"
import { srtOf, vttOf } from "../../voice/captions/Cues.js"

/** How a status begins of a transcript that has no end. */
export const brokenOff = "Broken off"

/** @param {() => string} about what to know of the model that writes the text */
export const makeTranscript = (about) => {
  const card = byId("listen-result", HTMLElement)
  const status = byId("listen-status", HTMLElement)
  const lag = byId("listen-lag", HTMLElement)
  const progress = byId("listen-progress", HTMLProgressElement)
  const firm = card.querySelector(".firm")
  const soft = card.querySelector(".soft")
  const said = byId("listen-said", HTMLElement)
  const receipt = byId("listen-receipt", HTMLElement)
  const times = byId("listen-times", HTMLElement)
  const links = {
    txt: byId("listen-txt", HTMLAnchorElement),
    srt: byId("listen-srt", HTMLAnchorElement),
    vtt: byId("listen-vtt", HTMLAnchorElement),
  }
  let told = ""

  return {
    /** @param {string} text */
    begin(text) {
      card.hidden = false
      byId("listen-about", HTMLElement).textContent = about()
      this.status(text)
      lag.textContent = ""
      times.textContent = ""
      progress.hidden = true
      receipt.replaceChildren()
      for (const link of Object.values(links)) link.hidden = true
      told = ""
      said.replaceChildren()
      this.text("", "")
    },
    /** @param {string} text */
    status(text) {
      if (status.textContent !== text) status.textContent = text
      status.classList.toggle("broken", text.startsWith(brokenOff))
    },
    /** @param {number | undefined} lagMs */
    lag(lagMs) {
      lag.textContent = lagMs === undefined ? "" : `captions ${Math.round(lagMs)} ms behind`
    },
    /** @param {number | undefined} share 0 to 1; undefined while there is no number */
    progress(share) {
      progress.hidden = false
      if (share === undefined) progress.removeAttribute("value")
      else progress.value = share
    },
    hideProgress() {
      progress.hidden = true
    },
    /**
     * @param {string} stays
     * @param {string} mayChange
     */
    text(stays, mayChange) {
      if (firm !== null) firm.textContent = stays
      if (soft !== null) soft.textContent = mayChange
      // A screen reader is told the firm text only, and each part of it once.
      if (stays.startsWith(told) && stays.length > told.length) {
        said.append(stays.slice(told.length))
        told = stays
      } else if (!stays.startsWith(told)) told = stays
    },
    /** @param {HTMLElement} view */
    receipt(view) {
      receipt.replaceChildren(view)
    },
    /**
     * @param {string} text
     * @param {ReadonlyArray<import("../../voice/captions/Cues.js").Cue> | undefined} cues undefined where nothing has times
     * @param {string} note about the times
     */
    offer(text, cues, note) {
      if (text === "") return
      offerFile(links.txt, new Blob([`${text}\n`], { type: "text/plain" }), "transcript.txt")
      times.textContent = note
      if (cues === undefined) return
      offerFile(links.srt, new Blob([srtOf(cues)], { type: "text/plain" }), "transcript.srt")
      offerFile(links.vtt, new Blob([vttOf(cues)], { type: "text/vtt" }), "transcript.vtt")
    },
  }
}
