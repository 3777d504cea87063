// The map of the folders as text for docs/architecture.md: a diagram of the parts and a table of all folders.
import type { Folder } from "./Folders.ts"

export const startMark = "<!-- Made by `npm run map` from test/map/Folders.ts. -->"
export const endMark = "<!-- End of the map. -->"

/** The part of the product that a folder belongs to; one box of the diagram. */
const roomOf = (folder: string): string => {
  const [top = "", second] = folder.split("/")
  return top === "src" && second !== undefined ? `${top}/${second}` : top
}

type Arrows = ReadonlyMap<string, ReadonlySet<string>>

const arrowsBetweenRooms = (folders: Readonly<Record<string, Folder>>): Arrows => {
  const arrows = new Map<string, Set<string>>()
  for (const [folder, { imports }] of Object.entries(folders)) {
    const from = roomOf(folder)
    const targets = arrows.get(from) ?? new Set()
    arrows.set(from, targets)
    for (const target of imports) if (roomOf(target) !== from) targets.add(roomOf(target))
  }
  return arrows
}

const reaches = (arrows: Arrows, from: string, to: string, seen = new Set<string>()): boolean => {
  if (from === to) return true
  if (seen.has(from)) return false
  seen.add(from)
  return [...(arrows.get(from) ?? [])].some((next) => reaches(arrows, next, to, seen))
}

/** An arrow that a longer path implies is left out of the diagram; the table has all. */
const drawn = (arrows: Arrows, from: string): ReadonlyArray<string> => {
  const targets = [...(arrows.get(from) ?? [])]
  return targets
    .filter((target) => !targets.some((other) => other !== target && reaches(arrows, other, target)))
    .sort()
}

export const drawing = (folders: Readonly<Record<string, Folder>>): string => {
  const arrows = arrowsBetweenRooms(folders)
  const rooms = [...arrows.keys()].sort()
  const lines = rooms.flatMap((room) => drawn(arrows, room).map((target) => `  ${room} --> ${target}`))
  const rows = Object.entries(folders).map(
    ([folder, { holds, imports }]) =>
      `| \`${folder}\` | ${holds} | ${imports.map((name) => `\`${name}\``).join(" ")} |`,
  )
  return [
    startMark,
    "```mermaid",
    "graph TD",
    ...lines,
    "```",
    "",
    "| folder | holds | imports |",
    "|---|---|---|",
    ...rows,
    endMark,
  ].join("\n")
}

/** The page with a new map between its marks. Throws where a mark is missing. */
export const withDrawing = (page: string, map: string): string => {
  const start = page.indexOf(startMark)
  const end = page.indexOf(endMark)
  if (start < 0 || end < start) throw new Error("docs/architecture.md has lost the marks around its map")
  return page.slice(0, start) + map + page.slice(end + endMark.length)
}
