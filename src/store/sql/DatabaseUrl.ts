// The address of a database that several nodes share: what is one, and what of it may be shown. Called by Config and by
// the store; connects to nothing.

/** One sentence for whoever has to correct it. */
export const databaseUrlRule = "postgres://USER:PASSWORD@HOST:PORT/DATABASE, with ?sslmode=require for TLS"

const isDecodable = (text: string): boolean => {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** The address as it was given, or undefined where it is none. */
export const parseDatabaseUrl = (text: string): string | undefined => {
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) return undefined
  const { hostname, password, pathname, username } = new URL(text)
  if (hostname === "" || pathname.lastIndexOf("/") > 0) return undefined
  return [username, password, pathname].every(isDecodable) ? text : undefined
}

/** Host and database, without user, password or options: for logs and errors. */
export const shownDatabase = (url: string): string => {
  const { host, pathname } = new URL(url)
  return `postgres://${host}${pathname}`
}

/** A text that is no address may still hold a password. */
export const hidePassword = (text: string): string =>
  text
    .replace(/^([a-z+]*:\/\/)?.*@/is, (_, scheme: string | undefined) => `${scheme ?? ""}…@`)
    .replace(/\?.*$/s, "?…")
