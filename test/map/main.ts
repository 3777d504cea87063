// `npm run map`: writes the picture of test/map/Layers.ts into docs/architecture.md.
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { drawing, withDrawing } from "./Drawing.ts"
import { layers } from "./Layers.ts"
import { root, textOf } from "./ReadImports.ts"

const page = "docs/architecture.md"
writeFileSync(join(root, page), withDrawing(textOf(page), drawing(layers)))
