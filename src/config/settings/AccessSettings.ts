// Settings of credentials and of the addresses that are trusted.
import { parseProxies, trustNone } from "#domain/access/ClientAddress.ts"
import { devKeySettings } from "#domain/access/DevelopmentKey.ts"
import { integer, nonEmpty, oneOf, parseUrl, type Setting } from "./Setting.ts"

export const accessSettings = {
  devKey: {
    variable: "EDGEWISE_DEV_KEY",
    value: "loopback|anywhere|off",
    help: "from where the development key is accepted; `loopback` makes none on a shared database or beyond loopback",
    allowed: `one of ${devKeySettings.join(", ")}`,
    fallback: "loopback",
    parse: oneOf(devKeySettings).parse,
  },
  twilioToken: {
    variable: "EDGEWISE_TWILIO_TOKEN",
    value: "TOKEN",
    help: "auth token of the account at Twilio, whose signed telephone calls are taken; they are off without it",
    allowed: "a text that is not empty",
    fallback: "",
    fallbackText: "none",
    parse: nonEmpty,
    shown: () => "(hidden)",
  },
  sessionSeconds: {
    variable: "EDGEWISE_SESSION_SECONDS",
    value: "SECONDS",
    help: "lifetime of a session token",
    // Protocol 17.4.
    fallback: 3_600,
    ...integer(60, 86_400),
  },
  signingKeyDays: {
    variable: "EDGEWISE_SIGNING_KEY_DAYS",
    value: "DAYS",
    help: "age at which the key that signs session tokens is replaced",
    // A guess: frequent enough that rotation is routine.
    fallback: 30,
    ...integer(1, 3_650),
  },
  authJwksUrl: {
    variable: "EDGEWISE_AUTH_JWKS_URL",
    value: "URL",
    help: "where an edge fetches the public keys of session tokens",
    allowed: "an http or https address, e.g. http://127.0.0.1:8081/.well-known/jwks.json",
    fallback: "",
    fallbackText: "from the data directory",
    parse: parseUrl,
  },
  trustedProxies: {
    variable: "EDGEWISE_TRUSTED_PROXIES",
    value: "ADDRESSES",
    help: "proxies whose X-Forwarded-For and CF-IPCountry headers are trusted; beyond loopback, `--transport auto` refuses connections of others unless it does TLS",
    allowed: "addresses and CIDR blocks, separated by commas, e.g. 10.0.0.0/8,::1",
    fallback: trustNone,
    fallbackText: "none",
    parse: parseProxies,
  },
} as const satisfies Record<string, Setting<unknown>>
