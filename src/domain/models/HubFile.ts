// What `hf:owner/repo@commit/file` names: a file of a model repository on a hub, where it is fetched and where it is
// kept. Pure. Read by the catalog and by the downloader; knows no file system and no network.

export interface HubFile {
  /** `owner/name`. */
  readonly repo: string
  /** A commit, or a branch or tag that the hub resolves. */
  readonly revision: string
  /** Inside the repository, with `/` between its parts. */
  readonly path: string
}

export const hubScheme = "hf:"

/** A part of a name that becomes a directory: no separator, no hidden file, and nothing that climbs up. */
const part = "[A-Za-z0-9_][A-Za-z0-9._-]{0,127}"
const pattern = new RegExp(`^hf:(${part}/${part})@(${part})/(${part}(?:/${part}){0,15})$`)

/** Undefined where the text is no such name. */
export const parseHubFile = (source: string): HubFile | undefined => {
  const match = pattern.exec(source)
  if (match === null || source.includes("..")) return undefined
  return { repo: match[1]!, revision: match[2]!, path: match[3]! }
}

/** Where a hub answers for the file: its content, or a redirect to it. `endpoint` without a slash at its end. */
export const resolveUrl = (endpoint: string, { path, repo, revision }: HubFile): string =>
  `${endpoint}/${repo}/resolve/${revision}/${path}`

/** Where the file is kept, below the directory of pulled weights. */
export const keptAt = ({ path, repo, revision }: HubFile): string => `hf/${repo}/${revision}/${path}`
