// multipart/form-data bodies with exact bytes, valid and invalid, and the request around them.
import { randomBytes } from "node:crypto"

export interface Part {
  readonly name: string
  /** File name. Absent: the part is a field. */
  readonly filename?: string
  readonly type?: string
  readonly body: string | Uint8Array
}

export const field = (name: string, body: string): Part => ({ name, body })

export const filePart = (body: string | Uint8Array, filename = "audio", name = "file"): Part => ({
  name,
  filename,
  type: "application/octet-stream",
  body,
})

export const partHead = ({ filename, name, type }: Part): string =>
  `content-disposition: form-data; name="${name}"${filename === undefined ? "" : `; filename="${filename}"`}\r\n` +
  `${type === undefined ? "" : `content-type: ${type}\r\n`}\r\n`

interface Multipart {
  readonly contentType: string
  readonly body: Buffer
}

export const multipart = (
  parts: ReadonlyArray<Part>,
  boundary = randomBytes(12).toString("hex"),
): Multipart => {
  const pieces: Array<Uint8Array> = []
  for (const part of parts) {
    pieces.push(
      Buffer.from(`--${boundary}\r\n${partHead(part)}`),
      Buffer.from(part.body),
      Buffer.from("\r\n"),
    )
  }
  pieces.push(Buffer.from(`--${boundary}--\r\n`))
  return { contentType: `multipart/form-data; boundary=${boundary}`, body: Buffer.concat(pieces) }
}
