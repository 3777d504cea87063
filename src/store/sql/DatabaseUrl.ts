// Parses the address of a shared database and removes the password for display.

/** The allowed form, for error messages. */
export const databaseUrlRule = "postgres://USER:PASSWORD@HOST:PORT/DATABASE, with ?sslmode=require for TLS"

const isDecodable = (text: string): boolean => {
  try {
    decodeURIComponent(text)
    return true
  } catch {
    return false
  }
}

/** Returns the address unchanged, or undefined if it is not valid. */
export const parseDatabaseUrl = (text: string): string | undefined => {
  if (!/^postgres(ql)?:\/\//.test(text) || !URL.canParse(text)) return undefined
  const { hostname, password, pathname, username } = new URL(text)
  if (hostname === "" || pathname.lastIndexOf("/") > 0) return undefined
  return [username, password, pathname].every(isDecodable) ? text : undefined
}

/** Host and database, without user, password or options, for logs and errors. */
export const shownDatabase = (url: string): string => {
  const { host, pathname } = new URL(url)
  return `postgres://${host}${pathname}`
}

/** Hides a password, also in a text that is not a valid address. */
export const hidePassword = (text: string): string =>
  text
    .replace(/^([a-z+]*:\/\/)?.*@/is, (_, scheme: string | undefined) => `${scheme ?? ""}…@`)
    .replace(/\?.*$/s, "?…")
