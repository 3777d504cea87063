// The picture of the layers in docs/architecture.md.
import type { Layer } from "./Layers.ts"

const startMark = "<!-- Made by `npm run map` from test/map/Layers.ts. -->"
const endMark = "<!-- End of the picture. -->"

const reaches = (layers: ReadonlyArray<Layer>, from: string, to: string): boolean =>
  from === to ||
  (layers.find(({ name }) => name === from)?.imports ?? []).some((next) => reaches(layers, next, to))

/** A Mermaid diagram. An arrow that a longer path implies is left out. */
export const drawing = (layers: ReadonlyArray<Layer>): string => {
  const idOf = (name: string) => name.replaceAll(" ", "-")
  const boxes = layers.map(
    ({ folders, name }) => `  ${idOf(name)}["<b>${name}</b><br>${folders.join("<br>")}"]`,
  )
  const arrows = layers.flatMap(({ imports, name }) =>
    imports
      .filter((target) => !imports.some((other) => other !== target && reaches(layers, other, target)))
      .map((target) => `  ${idOf(name)} --> ${idOf(target)}`),
  )
  return [startMark, "```mermaid", "graph TD", ...boxes, ...arrows, "```", endMark].join("\n")
}

/** The page with a new picture between its marks. Throws where a mark is missing. */
export const withDrawing = (page: string, picture: string): string => {
  const start = page.indexOf(startMark)
  const end = page.indexOf(endMark)
  if (start < 0 || end < start) throw new Error("docs/architecture.md has lost the marks around its picture")
  return page.slice(0, start) + picture + page.slice(end + endMark.length)
}
