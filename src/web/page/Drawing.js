// Drawings that are as wide as the place they have, so that their text has the same size on a phone and on a wide screen.

/**
 * @param {HTMLElement} place
 * @param {(width: number) => void} draw called with the place's width when it changes, never with 0
 */
export const onWidth = (place, draw) => {
  let last = 0
  new ResizeObserver(() => {
    const width = Math.floor(place.clientWidth)
    if (width === 0 || width === last) return
    last = width
    draw(width)
  }).observe(place)
}
