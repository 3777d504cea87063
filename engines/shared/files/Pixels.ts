// Reads the pixels of a picture, which are in a file of the node.
import { readFile } from "node:fs/promises"
import type { Picture, PictureFile } from "../../protocol/Text.ts"

/** The picture with its pixels. @throws if the file is gone or has another size: the request was cancelled */
export const readPixels = async (picture: Picture | PictureFile): Promise<Picture> => {
  if ("rgb" in picture) return picture
  const { path, ...facts } = picture
  const rgb = await readFile(path)
  if (rgb.length !== facts.width * facts.height * 3) throw new Error("the picture has another size")
  return { ...facts, rgb }
}
