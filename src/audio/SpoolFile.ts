// Temporary files on disk: uploads, clips, decoded audio.
import { unlink } from "node:fs/promises"

/**
 * Removes the file if it exists. Half the system calls of `rm` with `force`; each costs the event loop 0.1 ms or more.
 */
export const removeSpooled = async (path: string): Promise<void> => {
  try {
    await unlink(path)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "ENOENT") throw cause
  }
}
