// A listener's base address as a client can use it. Pure.

/** A name, an IPv4 address or a bracketed IPv6 address, and perhaps a port. */
const hostShape = /^([A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?$/

/**
 * A listener that is bound to all addresses has no address of its own. The name in the request's `Host` header is used
 * instead, because the client has just reached this machine under it.
 */
export const ownAddress = (base: string, host: string | undefined): string => {
  const every = /^(https?):\/\/(?:0\.0\.0\.0|\[::\])(?=:|$)/
  if (!every.test(base)) return base
  const name = hostShape.exec(host ?? "")?.[1] ?? "127.0.0.1"
  return base.replace(every, `$1://${name}`)
}
