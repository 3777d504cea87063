// Form fields that keep their values over a reload.

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Field */

/**
 * Restores the fields of a panel and stores each change. Each tab has its own values, so that two of them do not overwrite what is
 * typed in the other; a new tab begins with the newest of all. A list whose options come later is restored by its owner, with
 * `wanted`.
 * @param {{ readonly settings: import("./Saved.js").Saved, readonly tab: import("./Saved.js").Saved }} places
 * @param {string} panel
 * @param {ReadonlyArray<Field>} fields with ids
 * @returns {{ wanted: (field: Field) => string }}
 */
export const keepFields = ({ settings, tab }, panel, fields) => {
  const name = `${panel}.fields`
  /** @type {Record<string, string>} */
  const values = { ...settings.get(name, {}), ...tab.get(name, {}) }
  for (const field of fields) {
    const value = values[field.id]
    if (typeof value === "string") {
      if (field instanceof HTMLInputElement && field.type === "checkbox") field.checked = value === "true"
      else field.value = value
    }
    const keep = () => {
      const isBox = field instanceof HTMLInputElement && field.type === "checkbox"
      values[field.id] = isBox ? String(field.checked) : field.value
      tab.set(name, values)
      settings.set(name, { ...settings.get(name, {}), [field.id]: values[field.id] })
    }
    field.addEventListener("change", keep)
    field.addEventListener("input", keep)
  }
  return { wanted: (field) => values[field.id] ?? field.value }
}
