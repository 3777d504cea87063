// Parses the address of a shared database and removes the password for display. The address may name several hosts, of which one
// takes writes at a time.

/** The allowed form, for error messages. */
export const databaseUrlRule =
  "postgres://USER:PASSWORD@HOST:PORT/DATABASE, with ?sslmode=require for TLS; several hosts as HOST:PORT,HOST:PORT"

const isDecodable = (text: string): boolean => {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** Addresses of one host each, in the order in which the address names them. */
const hostUrls = (url: string): ReadonlyArray<string> => {
  const match = /^([a-z]+:\/\/)([^/?#]*@)?([^/?#]*)(.*)$/s.exec(url)
  if (match === null) return [url]
  const [, scheme = "", user = "", hosts = "", rest = ""] = match
  return hosts.split(",").map((host) => `${scheme}${user}${host}${rest}`)
}

const isAddress = (text: string): boolean => {
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) return false
  const { hostname, password, pathname, username } = new URL(text)
  if (hostname === "" || pathname.lastIndexOf("/") > 0) return false
  return [username, password, pathname].every(isDecodable)
}

/** Returns the address unchanged, or undefined if it is not valid. */
export const parseDatabaseUrl = (text: string): string | undefined =>
  hostUrls(text).every(isAddress) ? text : undefined

/** Hosts and database, without user, password or options, for logs and errors. */
export const shownDatabase = (url: string): string => {
  const hosts = hostUrls(url).map((one) => new URL(one))
  return `postgres://${hosts.map(({ host }) => host).join(",")}${hosts[0]?.pathname ?? ""}`
}

/** Hides a password, also in a text that is not a valid address. */
export const hidePassword = (text: string): string =>
  text
    .replace(/^([a-z0-9+.-]*:\/\/)?.*@/is, (_, scheme: string | undefined) => `${scheme ?? ""}…@`)
    .replace(/\?.*$/s, "?…")

/** The hosts of an address and the one that is used now. */
export class DatabaseHosts {
  readonly #urls: ReadonlyArray<string>
  #at = 0

  constructor(url: string) {
    this.#urls = hostUrls(url)
  }

  get count(): number {
    return this.#urls.length
  }
  get url(): string {
    return this.#urls[this.#at] ?? ""
  }
  /** The one that is used does not answer, or takes no writes. */
  leave(url: string): void {
    if (url === this.url) this.#at = (this.#at + 1) % this.#urls.length
  }
}
