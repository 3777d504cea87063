// Reads an operator's certificate and private key and checks that they belong together and are valid now.
import { readFile, stat } from "node:fs/promises"
import { Clock, Effect, Schema } from "effect"
import { type Certificate, checkPair, isProblem } from "#domain/access/Certificate.ts"

/** A mistake of the operator: `serve` exits with status 2. */
export class BadCertificate extends Schema.TaggedError<BadCertificate>()("BadCertificate", {
  /** The setting that names the file. */
  variable: Schema.String,
  path: Schema.String,
  problem: Schema.String,
}) {
  readonly exitStatus = 2
  override get message(): string {
    return this.path === ""
      ? `${this.variable}: ${this.problem}`
      : `${this.variable}: ${this.path}: ${this.problem}`
  }
}

/** Paths of the two files, and the settings that name them. */
export interface PairFiles {
  readonly cert: string
  readonly key: string
  readonly certVariable: string
  readonly keyVariable: string
}

export interface LoadedPair {
  readonly certificate: Certificate
  /** The text of the certificate file. */
  readonly pem: string
}

/** Far above real files: a certificate with a long chain has 10 KB. */
const maxBytes = 1_000_000

const words: Readonly<Record<string, string>> = {
  ENOENT: "no such file",
  EACCES: "this user may not read it",
  EPERM: "this user may not read it",
  ENOTDIR: "no such file",
  ELOOP: "its symbolic links lead in a circle",
}

const unreadable = (cause: unknown): string => {
  const code = cause instanceof Error && "code" in cause ? String(cause.code) : ""
  return words[code] ?? `cannot be read${code === "" ? "" : ` (${code})`}`
}

const readPem = Effect.fnUntraced(function* (variable: string, path: string) {
  const bad = (problem: string) => new BadCertificate({ variable, path, problem })
  const attempt = <A>(run: () => Promise<A>) =>
    Effect.tryPromise({ try: run, catch: (cause) => bad(unreadable(cause)) })
  const found = yield* attempt(() => stat(path))
  if (!found.isFile()) return yield* bad(found.isDirectory() ? "is a directory" : "is not a file")
  if (found.size > maxBytes) return yield* bad(`is larger than ${maxBytes} bytes, so it is no PEM file`)
  return yield* attempt(() => readFile(path, "latin1"))
})

export const readPair = Effect.fnUntraced(function* (files: PairFiles) {
  const pem = yield* readPem(files.certVariable, files.cert)
  const key = yield* readPem(files.keyVariable, files.key)
  const checked = checkPair(pem, key, new Date(yield* Clock.currentTimeMillis))
  if (isProblem(checked)) {
    const isCert = checked.file === "cert"
    return yield* new BadCertificate({
      variable: isCert ? files.certVariable : files.keyVariable,
      path: isCert ? files.cert : files.key,
      problem: checked.problem,
    })
  }
  return { certificate: checked, pem } satisfies LoadedPair
})

/** A text that changes when either file is written, replaced or exchanged behind a symbolic link. */
export const pairSignature = ({ cert, key }: PairFiles): Effect.Effect<string> =>
  Effect.promise(async () => {
    const one = async (path: string): Promise<string> => {
      try {
        const { dev, ino, mtimeMs, size } = await stat(path)
        return [dev, ino, mtimeMs, size].join(":")
      } catch {
        return "none"
      }
    }
    return `${await one(cert)} ${await one(key)}`
  })
