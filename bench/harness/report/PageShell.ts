// The frame of a report: one HTML file without scripts and without anything from elsewhere, light or dark by the reader's
// choice, readable on a phone. Pure.
import { escaped } from "./Plots.ts"
import type { Table } from "./Report.ts"

const style = `
:root{color-scheme:light dark;--back:#fff;--text:#1c2330;--soft:#5b6577;--line:#d9dee7;--card:#f6f8fb;--warn:#9a3412;
--c1:#1d5fbf;--c2:#b4530a;--c3:#1a7f47;--c4:#8b2fa8;--c5:#b3261e;--c6:#5b6577}
@media (prefers-color-scheme:dark){:root{--back:#12161d;--text:#e6eaf1;--soft:#9aa5b8;--line:#303a4a;--card:#1a202a;--warn:#fdba74;
--c1:#7db3ff;--c2:#f5b26b;--c3:#6fd39a;--c4:#d79bee;--c5:#ff8f86;--c6:#9aa5b8}}
*{box-sizing:border-box}
body{margin:0 auto;padding:1.5rem 1rem 4rem;max-width:60rem;background:var(--back);color:var(--text);font:16px/1.5 system-ui,sans-serif}
h1{font-size:1.5rem;margin:0 0 .25rem}h2{font-size:1.2rem;margin:2rem 0 .5rem}h3{font-size:1rem;margin:1.25rem 0 .25rem}
p{margin:.4rem 0}.soft{color:var(--soft)}.warn{color:var(--warn);font-weight:600}
.wide{overflow-x:auto}table{border-collapse:collapse;font-variant-numeric:tabular-nums;width:100%;font-size:.9rem}
th,td{text-align:right;padding:.3rem .5rem;border-bottom:1px solid var(--line);white-space:nowrap}
th:first-child,td:first-child{text-align:left}th{color:var(--soft);font-weight:600}
figure{margin:1rem 0;background:var(--card);border:1px solid var(--line);border-radius:.5rem;padding:.75rem}
figcaption{font-weight:600;margin-bottom:.25rem}svg{width:100%;height:auto;display:block}
.grid{stroke:var(--line);stroke-width:1}.tick,.axis{fill:var(--soft);font:12px system-ui,sans-serif}
.line{fill:none;stroke-width:2}.line.c1{stroke:var(--c1)}.line.c2{stroke:var(--c2)}.line.c3{stroke:var(--c3)}.line.c4{stroke:var(--c4)}.line.c5{stroke:var(--c5)}.line.c6{stroke:var(--c6)}
.dot{opacity:.75}.dot.c1{fill:var(--c1)}.dot.c2{fill:var(--c2)}.dot.c3{fill:var(--c3)}.dot.c4{fill:var(--c4)}.dot.c5{fill:var(--c5)}.dot.c6{fill:var(--c6)}
.legend{display:flex;flex-wrap:wrap;gap:.25rem 1rem;font-size:.85rem;color:var(--soft)}.legend i{display:inline-block;width:.8rem;height:.8rem;border-radius:.2rem;margin-right:.35rem;vertical-align:-.1rem}
i.c1{background:var(--c1)}i.c2{background:var(--c2)}i.c3{background:var(--c3)}i.c4{background:var(--c4)}i.c5{background:var(--c5)}i.c6{background:var(--c6)}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem;font-size:.9rem}dt{color:var(--soft)}dd{margin:0;overflow-wrap:anywhere}
@media (max-width:30rem){dl{grid-template-columns:1fr}dd{margin-bottom:.4rem}.tick,.axis{font-size:20px}}
`

export const page = (title: string, body: string): string =>
  `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1"><title>${escaped(title)}</title><style>${style}</style></head><body>${body}</body></html>\n`

/** Cells are text, which is escaped. */
export const htmlTable = ({ heading, rows }: Table): string =>
  `<div class="wide" tabindex="0"><table><thead><tr>${heading.map((cell) => `<th scope="col">${escaped(cell)}</th>`).join("")}</tr></thead><tbody>${rows
    .map((row) => `<tr>${row.map((cell) => `<td>${escaped(cell)}</td>`).join("")}</tr>`)
    .join("")}</tbody></table></div>`

export const factsList = (facts: ReadonlyArray<readonly [string, string]>): string =>
  `<dl>${facts.map(([name, value]) => `<dt>${escaped(name)}</dt><dd>${escaped(value)}</dd>`).join("")}</dl>`
