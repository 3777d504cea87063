// The formats of strings as patterns: what common validators accept, without rare forms.

import type { Automaton } from "../../Expression.ts"
import { withLength } from "./Automata.ts"
import { wholeAutomaton } from "./Pattern.ts"

const leapYear = "(?:[0-9]{2}(?:0[48]|[2468][048]|[13579][26])|(?:[02468][048]|[13579][26])00)"
const date =
  "(?:[0-9]{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12][0-9]|3[01])|(?:0[469]|11)-(?:0[1-9]|[12][0-9]|30)" +
  `|02-(?:0[1-9]|1[0-9]|2[0-8]))|${leapYear}-02-29)`
const time =
  "(?:[01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](?:\\.[0-9]{1,9})?(?:Z|[+-](?:[01][0-9]|2[0-3]):[0-5][0-9])"
const count = "(?:0|[1-9][0-9]{0,8})"
const timeOfDay = `T(?:${count}H(?:${count}M(?:${count}S)?)?|${count}M(?:${count}S)?|${count}S)`
const days = `(?:${count}Y(?:${count}M(?:${count}D)?)?|${count}M(?:${count}D)?|${count}D)`
const duration = `P(?:${count}W|${timeOfDay}|${days}(?:${timeOfDay})?)`

const octet = "(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])"
const ipv4 = `${octet}(?:\\.${octet}){3}`
const group = "[0-9A-Fa-f]{1,4}"
/** `n` groups before `::` and at most 7 - n behind it. */
const shortened = [0, 1, 2, 3, 4, 5, 6, 7].map((n) => {
  const before = n === 0 ? "" : `${group}(?::${group}){${n - 1}}`
  const after = n === 7 ? "" : `(?:${group}(?::${group}){0,${6 - n}})?`
  return `${before}::${after}`
})
const ipv6 = `(?:${group}(?::${group}){7}|${shortened.join("|")}|::(?:[Ff]{4}:)?${ipv4})`

const longestHost = 251
const alnum = "[A-Za-z0-9]"
const inner = "[A-Za-z0-9-]"
/** Without two hyphens as third and fourth character: they mark encoded international labels, which have more rules. */
const label = `(?:${alnum}(?:${inner}?${alnum})?|${alnum}${inner}{2}${alnum}|${alnum}${inner}(?:${alnum}${inner}|-${alnum})${inner}{0,36}${alnum})`
/** At most six labels of at most 41 characters: together less than the 253 that a host name may have. */
const hostname = `${label}(?:\\.${label}){0,5}`
/** Labels of any length, for formats that do not limit them. */
const host = `(?:${alnum}+(?:-${alnum}+)*\\.)*${alnum}+(?:-${alnum}+)*`
/** A label of a short host name is not too long: up to 63 characters are allowed. */
const shortHost = 63
const atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
const email = `${atom}+(?:\\.${atom}+)*@(?:${alnum}+(?:-${alnum}+)*\\.)+[A-Za-z]{2,24}`

const encoded = "%[0-9A-Fa-f]{2}"
const segment = `(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|${encoded})`
const afterPath = `(?:\\?(?:${segment}|[/?])*)?(?:#(?:${segment}|[/?])*)?`
const uri =
  `(?:[A-Za-z][A-Za-z0-9+.-]*://${host}(?::[0-9]{1,5})?(?:/${segment}*)*` +
  `|(?:mailto|tel|urn|data|news|geo):${segment}+(?:/${segment}*)*)${afterPath}`
const relative = `(?:/${segment}+)+/?${afterPath}`
const steps = "(?:/(?:[^~/]|~[01])*)*"
const base64 = "[A-Za-z0-9+/]"

const hex = (digits: number) => `[0-9A-Fa-f]{${digits}}`

const patterns: Readonly<Record<string, string>> = {
  date,
  time,
  "date-time": `${date}T${time}`,
  duration,
  email,
  hostname,
  ipv4,
  ipv6,
  uri,
  uuid: `${hex(8)}-${hex(4)}-${hex(4)}-${hex(4)}-${hex(12)}`,
  "uri-reference": `(?:${uri}|${relative})`,
  // Each has all strings of the other, and more that are rare.
  "idn-email": email,
  "idn-hostname": hostname,
  iri: uri,
  "iri-reference": `(?:${uri}|${relative})`,
  "json-pointer": steps,
  "relative-json-pointer": `(?:0|[1-9][0-9]{0,3})(?:#|${steps})`,
  base64: `(?:${base64}{4})*(?:${base64}{2}==|${base64}{3}=)?`,
  base64url: "[A-Za-z0-9_-]*",
  e164: "\\+[1-9][0-9]{6,14}",
  ulid: "[0-7][0-9A-HJKMNP-TV-Z]{25}",
  nanoid: "[A-Za-z0-9_-]{21}",
  cuid2: "[a-z][a-z0-9]{23}",
  byte: `(?:${base64}{4})*(?:${base64}{2}==|${base64}{3}=)?`,
}

/** Formats that say nothing about which strings are valid. */
const open: ReadonlySet<string> = new Set(["password", "binary"])
/** Formats of numbers, which do not concern strings. */
const numberFormats: ReadonlySet<string> = new Set(["int32", "int64", "float", "double"])

const compiled = new Map<string, Automaton>()

export const isKnownFormat = (name: string): boolean =>
  Object.hasOwn(patterns, name) || open.has(name) || numberFormats.has(name)

/** The host names of at most `most` characters: counting needs fewer states without limits for each label. */
const shortHosts = (most: number): Automaton => withLength(wholeAutomaton(host), 1, Math.min(most, shortHost))

/** The strings of a format. Undefined: it holds every string. `most`: longer ones are not needed. */
export const formatAutomaton = (name: string, most?: number): Automaton | undefined => {
  if (name.endsWith("hostname") && isKnownFormat(name) && most !== undefined && most < longestHost) {
    return shortHosts(most)
  }
  if (!Object.hasOwn(patterns, name)) return undefined
  let automaton = compiled.get(name)
  if (automaton === undefined) {
    automaton = wholeAutomaton(patterns[name]!)
    compiled.set(name, automaton)
  }
  return automaton
}
