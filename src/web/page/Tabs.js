// Tabs by the ARIA pattern: one tab is in the tab order, the arrow keys, Home and End move between them, and each tab
// names its panel. The address's fragment names the chosen tab, so a reload and a link keep it.

/**
 * @param {HTMLElement} list the element with the role `tablist`
 * @param {(panel: string) => void} onShow gets the id of the panel that is shown
 * @param {boolean} [inAddress] whether the fragment of the address follows
 * @returns {(panel: string) => void} shows a panel
 */
export const makeTabs = (list, onShow, inAddress = false) => {
  const tabs = /** @type {Array<HTMLElement>} */ ([...list.querySelectorAll("[role=tab]")])
  const panelOf = (/** @type {HTMLElement} */ tab) => tab.getAttribute("aria-controls") ?? ""

  /** @param {string} panel */
  const show = (panel) => {
    for (const tab of tabs) {
      const isChosen = panelOf(tab) === panel
      tab.setAttribute("aria-selected", String(isChosen))
      tab.tabIndex = isChosen ? 0 : -1
      const target = document.getElementById(panelOf(tab))
      if (target !== null) target.hidden = !isChosen
    }
    if (inAddress) history.replaceState(null, "", `#${panel}`)
    onShow(panel)
  }

  list.addEventListener("click", (event) => {
    const tab = event.target instanceof Element ? event.target.closest("[role=tab]") : null
    if (tab instanceof HTMLElement) show(panelOf(tab))
  })
  list.addEventListener("keydown", (event) => {
    const at = tabs.indexOf(/** @type {HTMLElement} */ (document.activeElement))
    if (at < 0) return
    const steps = { ArrowRight: at + 1, ArrowLeft: at - 1 + tabs.length, Home: 0, End: tabs.length - 1 }
    const to = steps[/** @type {keyof typeof steps} */ (event.key)]
    const tab = to === undefined ? undefined : tabs[to % tabs.length]
    if (tab === undefined) return
    event.preventDefault()
    show(panelOf(tab))
    tab.focus()
  })
  const named = () => tabs.find((tab) => inAddress && panelOf(tab) === location.hash.slice(1))
  const first = named() ?? tabs[0]
  if (first !== undefined) show(panelOf(first))
  if (inAddress)
    addEventListener("hashchange", () => {
      const tab = named()
      if (tab !== undefined) show(panelOf(tab))
    })
  return show
}
