// An upload with progress. `fetch` does not tell how much of a body was sent; XMLHttpRequest does.
import { NodeGone, Refusal } from "./Client.js"

/**
 * @param {import("./Client.js").Client} client
 * @param {string} path
 * @param {FormData} form
 * @param {{ onProgress: (share: number) => void, signal: AbortSignal }} options
 * @returns {Promise<any>} the JSON of the answer
 */
export const upload = (client, path, form, { onProgress, signal }) =>
  new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open("POST", client.url(path))
    request.setRequestHeader("Authorization", `Bearer ${client.key()}`)
    request.upload.onprogress = ({ loaded, total }) => onProgress(total === 0 ? 0 : loaded / total)
    request.onerror = () => reject(new NodeGone())
    request.onabort = () => reject(new DOMException("stopped", "AbortError"))
    request.onload = () => {
      const body = (() => {
        try {
          return JSON.parse(request.responseText)
        } catch {
          return undefined
        }
      })()
      if (request.status < 400) return resolve(body)
      const after = request.getResponseHeader("retry-after")
      const detail = body?.detail ?? body?.message ?? request.statusText
      reject(new Refusal(request.status, String(detail), after === null ? undefined : Number(after)))
    }
    signal.addEventListener("abort", () => request.abort())
    request.send(form)
  })
