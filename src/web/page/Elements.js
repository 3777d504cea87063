// Short ways to the page's elements.

/**
 * The element with an id. The page is this project's own, so a missing one is a mistake of the code.
 * @template {HTMLElement} T
 * @param {string} id
 * @param {new () => T} kind
 * @returns {T}
 */
export const byId = (id, kind) => {
  const element = document.getElementById(id)
  if (!(element instanceof kind)) throw new Error(`the page has no ${kind.name} #${id}`)
  return element
}

/**
 * What a panel says when something is wrong: gives the function that shows a sentence in the element, or hides it for an empty one.
 * @param {HTMLElement} element
 * @returns {(sentence: string) => void}
 */
export const sayIn = (element) => (sentence) => {
  element.textContent = sentence
  element.hidden = sentence === ""
}

/**
 * A new element.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, string | number | boolean | undefined>} [attributes] `true` is an empty attribute, `false` none
 * @param {...(Node | string)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export const h = (tag, attributes = {}, ...children) => {
  const element = document.createElement(tag)
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue
    element.setAttribute(name, value === true ? "" : String(value))
  }
  element.append(...children)
  return element
}

/**
 * A new SVG element.
 * @param {string} tag
 * @param {Record<string, string | number>} attributes
 * @param {...(Node | string)} children
 */
export const svg = (tag, attributes, ...children) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag)
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value))
  element.append(...children)
  return element
}

/**
 * Replaces the options of a list and keeps the choice where it is still there.
 * @param {HTMLSelectElement} select
 * @param {ReadonlyArray<{ readonly value: string, readonly label?: string }>} options
 * @param {string} wanted the choice
 */
export const setOptions = (select, options, wanted) => {
  select.replaceChildren(...options.map(({ value, label }) => new Option(label ?? value, value)))
  if (options.some(({ value }) => value === wanted)) select.value = wanted
}

/**
 * Offers bytes as a file.
 * @param {HTMLAnchorElement} link
 * @param {Blob} blob
 * @param {string} name
 */
export const offerFile = (link, blob, name) => {
  if (link.href.startsWith("blob:")) URL.revokeObjectURL(link.href)
  link.href = URL.createObjectURL(blob)
  link.download = name
  link.hidden = false
}
