// Form fields that keep their values over a reload.

/** @typedef {HTMLInputElement | HTMLSelectElement | HTMLTextAreaElement} Field */

/**
 * Restores the fields of a panel and stores each change. A list whose options come later is restored by its owner, with
 * `wanted`.
 * @param {import("./Saved.js").Saved} saved
 * @param {string} panel
 * @param {ReadonlyArray<Field>} fields with ids
 * @returns {{ wanted: (field: Field) => string }}
 */
export const keepFields = (saved, panel, fields) => {
  const name = `${panel}.fields`
  /** @type {Record<string, string>} */
  const values = saved.get(name, {})
  for (const field of fields) {
    const value = values[field.id]
    if (typeof value === "string") {
      if (field instanceof HTMLInputElement && field.type === "checkbox") field.checked = value === "true"
      else field.value = value
    }
    const keep = () => {
      const isBox = field instanceof HTMLInputElement && field.type === "checkbox"
      values[field.id] = isBox ? String(field.checked) : field.value
      saved.set(name, values)
    }
    field.addEventListener("change", keep)
    field.addEventListener("input", keep)
  }
  return { wanted: (field) => values[field.id] ?? field.value }
}
