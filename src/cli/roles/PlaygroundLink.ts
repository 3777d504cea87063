// The link that the start of a node prints for its playground. Pure.

/** Addresses that mean all interfaces, and the one to open instead. */
const everyInterface: Readonly<Record<string, string>> = { "0.0.0.0": "127.0.0.1", "[::]": "[::1]" }

/**
 * The playground with the key in the address's fragment, which a browser never sends: the page takes it out of the address at
 * once. Without a key the page asks for one.
 * @param base the edge listener's address
 */
export const playgroundLink = (base: string, key: string | undefined): string => {
  const { hostname, port, protocol } = new URL(base)
  const page = `${protocol}//${everyInterface[hostname] ?? hostname}${port === "" ? "" : `:${port}`}/`
  return key === undefined ? page : `${page}#key=${encodeURIComponent(key)}`
}
