// Settings of the listeners: address, roles, ports and TLS.
import { isIP } from "node:net"
import { integer, nonEmpty, oneOf, type Setting } from "./Setting.ts"

const port = (variable: string, fallback: number, role: string): Setting<number> => ({
  variable,
  value: "PORT",
  help: `port of the ${role} listener; 0 picks a free one`,
  fallback,
  ...integer(0, 65_535),
})

export const roles = ["edge", "auth", "router"] as const
export type Role = (typeof roles)[number]

/** The setting with a role's port. */
export const portSettings = { edge: "port", auth: "authPort", router: "routerPort" } as const

const parseRoles = (text: string): ReadonlyArray<Role> | undefined => {
  const named = text.split(",").map((name) => roles.find((role) => role === name.trim()))
  return named.some((role) => role === undefined) ? undefined : roles.filter((role) => named.includes(role))
}

const parseAddresses = (text: string): ReadonlyArray<string> | undefined => {
  const addresses = text.split(",").map((address) => address.trim())
  return addresses.some((address) => isIP(address) === 0) ? undefined : addresses
}

export const listenerSettings = {
  host: {
    variable: "EDGEWISE_HOST",
    value: "ADDRESS",
    help: "address to bind",
    allowed: "an IPv4 or IPv6 address, e.g. 127.0.0.1 or 0.0.0.0",
    fallback: "127.0.0.1",
    parse: (text: string) => (/^[0-9.]+$|^[0-9a-fA-F:.]+$/.test(text) ? text : undefined),
  },
  roles: {
    variable: "EDGEWISE_ROLES",
    value: "ROLES",
    help: "what this process serves",
    allowed: "a list of edge, auth and router, separated by commas",
    fallback: roles,
    parse: parseRoles,
  },
  port: port("EDGEWISE_PORT", 8080, "edge"),
  authPort: port("EDGEWISE_AUTH_PORT", 8081, "auth"),
  routerPort: port("EDGEWISE_ROUTER_PORT", 8082, "router"),
  webrtcPort: {
    variable: "EDGEWISE_WEBRTC_PORT",
    value: "PORT",
    help: "UDP port of all WebRTC calls of the edge; calls are off without it",
    fallback: 0,
    fallbackText: "none",
    ...integer(1, 65_535),
  },
  webrtcAddress: {
    variable: "EDGEWISE_WEBRTC_ADDRESS",
    value: "ADDRESSES",
    help: "addresses at which callers reach the UDP port, where they are not this machine's own (NAT, containers)",
    allowed: "a list of IPv4 and IPv6 addresses, separated by commas",
    fallback: [],
    fallbackText: "those of the machine",
    parse: parseAddresses,
  },
  tls: {
    variable: "EDGEWISE_TLS",
    value: "auto|self-signed|off",
    help: "self-signed makes a certificate; auto uses EDGEWISE_TLS_CERT where it is set; off is plain HTTP",
    fallback: "auto",
    ...oneOf(["auto", "self-signed", "off"]),
  },
  tlsCert: {
    variable: "EDGEWISE_TLS_CERT",
    value: "FILE",
    help: "certificate with its chain, for TLS on every listener; read again when it changes and on SIGHUP",
    allowed: "the path of a PEM file",
    fallback: "",
    fallbackText: "none",
    parse: nonEmpty,
  },
  tlsKey: {
    variable: "EDGEWISE_TLS_KEY",
    value: "FILE",
    help: "private key of the certificate, without a password",
    allowed: "the path of a PEM file",
    fallback: "",
    fallbackText: "none",
    parse: nonEmpty,
  },
} as const satisfies Record<string, Setting<unknown>>
