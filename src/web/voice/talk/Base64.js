// Bytes in base64, as JSON events carry them. Pure.

/** Longest list of arguments of one call; engines allow more. A guess. */
const most = 8_192

/** @param {Uint8Array} bytes */
export const base64Of = (bytes) => {
  let text = ""
  for (let at = 0; at < bytes.length; at += most)
    text += String.fromCharCode(...bytes.subarray(at, at + most))
  return btoa(text)
}

/** @param {string} base64 @returns {Uint8Array<ArrayBuffer>} */
export const bytesOf = (base64) => {
  const text = atob(base64)
  const bytes = new Uint8Array(text.length)
  for (let at = 0; at < text.length; at++) bytes[at] = text.charCodeAt(at)
  return bytes
}
