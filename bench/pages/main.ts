// The entry point of `npm run figures`: writes the figures of all pages from bench/results. With `-- --check` it writes
// nothing and fails if a page differs from what it would write.
import { pages, writePages } from "./Pages.ts"

const isCheck = process.argv.includes("--check")
if (!isCheck) for (const path of writePages()) console.info(path)
const wrong = pages().flatMap(({ path, text, written, wrong }) => [
  ...wrong.map((why) => `${path}: ${why}`),
  ...(written === text ? [] : [`${path}: its figures are not those of bench/results; run: npm run figures`]),
])
for (const line of wrong) console.error(line)
process.exitCode = wrong.length > 0 ? 1 : 0
