// `npm run map`: writes the map of test/map/Folders.ts into docs/architecture.md.
import { writeFileSync } from "node:fs"
import { join } from "node:path"
import { drawing, withDrawing } from "./Drawing.ts"
import { folders } from "./Folders.ts"
import { root, textOf } from "./ReadImports.ts"

const page = "docs/architecture.md"
writeFileSync(join(root, page), withDrawing(textOf(page), drawing(folders)))
