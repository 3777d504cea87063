// A picture file as a `data:` URL. The node decodes the picture; here only its head is read, so that a wrong file costs nothing.
import { readFileSync } from "node:fs"
import { basename } from "node:path"
import { Effect } from "effect"
import { pictureHeadOf } from "#domain/pictures/PictureFile.ts"
import { readableSize } from "../shared/FileErrors.ts"
import { localFailure, type NodeRefused } from "../shared/NodeClient.ts"
import type { Picture } from "./Conversation.ts"

/** The body of a chat with pictures has at most 32 MB, and base64 makes a file a third longer (protocol 17.1). */
const largestBytes = 20_000_000

const read = (path: string): Picture => {
  const size = readableSize(path)
  if (size > largestBytes) {
    throw new Error(`${path}: ${size} bytes are more than a picture's ${largestBytes}`)
  }
  const bytes = readFileSync(path)
  const head = pictureHeadOf(bytes)
  if ("flaw" in head) throw new Error(`${path}: ${head.flaw}`)
  return { name: basename(path), url: `data:image/${head.format};base64,${bytes.toString("base64")}` }
}

export const readPicture = (path: string): Effect.Effect<Picture, NodeRefused> =>
  Effect.try({
    try: () => read(path),
    catch: localFailure,
  })
