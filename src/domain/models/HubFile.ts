// Parses `hf:owner/repo@commit/file`, the name of a file in a model repository on a hub. Pure.

export interface HubFile {
  /** `owner/name`. */
  readonly repo: string
  /** A commit, or a branch or tag that the hub resolves. */
  readonly revision: string
  /** Path in the repository, with `/` as separator. */
  readonly path: string
}

export const hubScheme = "hf:"

/** A part of a name that becomes a directory: no separator, no hidden file, no parent directory. */
const part = "[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"
const pattern = new RegExp(`^hf:(${part}/${part})@(${part})/(${part}(?:/${part}){0,15})$`)

/** Undefined if the text has another form. */
export const parseHubFile = (source: string): HubFile | undefined => {
  const match = pattern.exec(source)
  if (match === null || source.includes("..")) return undefined
  return { repo: match[1]!, revision: match[2]!, path: match[3]! }
}

/** Address of the file on the hub, which sends the content or a redirect. `endpoint` without a trailing slash. */
export const resolveUrl = (endpoint: string, { path, repo, revision }: HubFile): string =>
  `${endpoint}/${repo}/resolve/${revision}/${path}`

/** Path of the file, relative to the directory of pulled weights. */
export const keptAt = ({ path, repo, revision }: HubFile): string => `hf/${repo}/${revision}/${path}`

/** One file of a folder, and what is expected of it. */
export interface FolderMember {
  readonly file: HubFile
  readonly source: string
  readonly sha256?: string | undefined
  readonly sizeBytes?: number | undefined
}

/** The files of a folder on a hub, by the names in a catalog entry. */
export const membersOf = (
  folder: HubFile,
  members: Readonly<Record<string, { readonly sha256?: string; readonly sizeBytes?: number }>>,
): ReadonlyArray<FolderMember> =>
  Object.entries(members).map(([name, expected]) => {
    const file = { ...folder, path: `${folder.path}/${name}` }
    return { ...expected, file, source: sourceOf(file) }
  })

/** How a catalog entry names the file. */
export const sourceOf = ({ path, repo, revision }: HubFile): string =>
  `${hubScheme}${repo}@${revision}/${path}`
