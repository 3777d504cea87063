// Values of the page that survive a reload. Settings stay in the browser, the key and the conversation only in the tab.

/**
 * @typedef {object} Place
 * @property {(name: string) => string | null} getItem
 * @property {(name: string, value: string) => void} setItem
 * @property {(name: string) => void} removeItem
 */

const prefix = "edgewise."

/** JSON values by name in a browser's storage. A storage that refuses (full, or switched off) only forgets. */
export class Saved {
  #place

  /** @param {Place} place localStorage or sessionStorage */
  constructor(place) {
    this.#place = place
  }

  /**
   * @template T
   * @param {string} name
   * @param {T} otherwise the value where nothing, or nothing of the same type, is stored
   * @returns {T}
   */
  get(name, otherwise) {
    try {
      const text = this.#place.getItem(prefix + name)
      if (text === null) return otherwise
      const value = JSON.parse(text)
      const isSame = typeof value === typeof otherwise && Array.isArray(value) === Array.isArray(otherwise)
      return isSame && value !== null ? value : otherwise
    } catch {
      return otherwise
    }
  }

  /**
   * @param {string} name
   * @param {unknown} value
   */
  set(name, value) {
    try {
      this.#place.setItem(prefix + name, JSON.stringify(value))
    } catch {
      // An older value must not come back instead.
      this.remove(name)
    }
  }

  /** @param {string} name */
  remove(name) {
    try {
      this.#place.removeItem(prefix + name)
    } catch {
      // A storage that is switched off holds nothing.
    }
  }
}
