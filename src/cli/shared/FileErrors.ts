// What Node says of a file that cannot be read or written, in words. Node's own message is a code, a system call and a path.
import { accessSync, constants, statSync } from "node:fs"

const words: Readonly<Record<string, string>> = {
  EACCES: "this user may not read or write it",
  EISDIR: "is a folder, not a file",
  ENOENT: "there is no such file or folder",
  ENOSPC: "no space is left on the disk",
  ENOTDIR: "a part of this path is a file, not a folder",
  EPERM: "this user may not read or write it",
  EROFS: "the disk is read-only",
}

/** `ENOENT: no such file or directory, open 'a.wav'`, also behind the name of an option. */
const systemMessage = /(^|: )(E[A-Z]+): [^,']+, (\w+)(?: '([^']*)')?(?: -> '[^']*')?$/

/** The message with what the system said in words. Any other message stays as it is. */
export const inWords = (message: string): string => {
  const [, between = "", code = "", call, path] = systemMessage.exec(message) ?? []
  const said = call === "mkdir" && code === "ENOENT" ? "this folder cannot be made" : words[code]
  if (said === undefined) return message
  const before = message.slice(0, message.search(systemMessage)) + between
  return path === undefined || before.includes(path) ? before + said : `${before}${path}: ${said}`
}

/** The size in bytes of a file that a command was given. @throws Error if it cannot be read or is a folder */
export const readableSize = (path: string): number => {
  const stat = statSync(path)
  if (stat.isDirectory()) throw new Error(`${path}: ${words.EISDIR}`)
  accessSync(path, constants.R_OK)
  return stat.size
}
