// The session description (SDP, RFC 8866) with which a browser offers a call, checked and reduced to what this node speaks: one audio
// section with Opus and one data channel, over one bundled transport. The reduced text is written anew from values that were checked, so
// that the library which reads it in a process of its own gets nothing else. Above all it holds no candidates: their names would be resolved and
// their addresses probed, both for a stranger. A caller is found by the address from which its checks come. Pure.

/** Characters of an offer. A guess: those of browsers with audio and a data channel have 2,000 to 4,000. */
export const maxOfferCharacters = 32_768

/** Lines of an offer. A guess: those of browsers with audio and a data channel have 60 to 120. */
export const maxOfferLines = 500

export interface Offer {
  /** The reduced offer. */
  readonly sdp: string
  /** The payload type of Opus in RTP packets. */
  readonly payloadType: number
  /** The source (SSRC) that the offer names for its audio; undefined where it names none. */
  readonly ssrc: number | undefined
}

/** Why an offer is refused, as a predicate of "the offer". */
interface OfferProblem {
  readonly problem: string
}

interface Section {
  /** The value of its `m=` line; empty for the part before the first one. */
  readonly media: string
  readonly lines: ReadonlyArray<string>
}

const problem = (text: string): OfferProblem => ({ problem: text })

const lineForm = /^[a-z]=[\x20-\x7e]*$/

const sectionsOf = (lines: ReadonlyArray<string>): readonly [Section, ...Array<Section>] => {
  const sections: Array<{ media: string; lines: Array<string> }> = [{ media: "", lines: [] }]
  for (const line of lines) {
    if (line.startsWith("m=")) sections.push({ media: line.slice(2), lines: [] })
    else sections.at(-1)!.lines.push(line)
  }
  return sections as unknown as readonly [Section, ...Array<Section>]
}

/** Values of an attribute, in their order. */
const valuesOf = ({ lines }: Section, name: string): ReadonlyArray<string> => {
  const start = `a=${name}:`
  return lines.filter((line) => line.startsWith(start)).map((line) => line.slice(start.length).trim())
}

/** What an attribute of the transport must look like. Limits of RFC 8839; RFC 8122 for fingerprints, of which SHA-1 is too weak. */
const transportForms = {
  "ice-ufrag": /^[A-Za-z0-9+/]{4,256}$/,
  "ice-pwd": /^[A-Za-z0-9+/]{22,256}$/,
  fingerprint: /^sha-(?:256|384|512) [0-9A-Fa-f]{2}(?::[0-9A-Fa-f]{2}){31,63}$/i,
  setup: /^(?:actpass|active|passive)$/,
}

type TransportAttribute = keyof typeof transportForms

/** The one value of an attribute in all sections, or what is wrong with it. */
const transportValue = (
  sections: ReadonlyArray<Section>,
  name: TransportAttribute,
): string | OfferProblem => {
  const values = [...new Set(sections.flatMap((section) => valuesOf(section, name)))]
  const [value, other] = values
  if (value === undefined) return problem(`must have a=${name}`)
  if (other !== undefined) return problem(`must have the same a=${name} in all sections, which are bundled`)
  return transportForms[name].test(value) ? value : problem(`has an a=${name} that cannot be used`)
}

const midOf = (section: Section): string | OfferProblem => {
  const [mid = "", other] = valuesOf(section, "mid")
  return other === undefined && /^[A-Za-z0-9_.+-]{1,32}$/.test(mid)
    ? mid
    : problem("must have one a=mid of at most 32 letters and digits in each section")
}

/** The payload type of Opus among those of the section's `m=` line. */
const opusOf = (audio: Section): number | undefined => {
  const offered = audio.media.split(" ").slice(3)
  for (const value of valuesOf(audio, "rtpmap")) {
    const [type = "", codec = ""] = value.split(" ")
    if (/^opus\/48000\/2$/i.test(codec) && offered.includes(type) && /^\d{1,3}$/.test(type)) {
      const payloadType = Number(type)
      // 64 to 95 cannot be told from RTCP in the same stream (RFC 5761).
      if (payloadType <= 127 && (payloadType < 64 || payloadType > 95)) return payloadType
    }
  }
  return undefined
}

const directions = ["sendrecv", "sendonly", "recvonly"]

const directionOf = (audio: Section, session: Section): string => {
  const named = [...audio.lines, ...session.lines].find((line) => directions.includes(line.slice(2)))
  return named?.slice(2) ?? "sendrecv"
}

const ssrcOf = (audio: Section): number | undefined => {
  const [, id] = /^(\d{1,10}) /.exec(valuesOf(audio, "ssrc")[0] ?? "") ?? []
  const ssrc = Number(id)
  return id === undefined || ssrc > 0xffff_ffff ? undefined : ssrc
}

/** `maxMessageBytes`: of a message of the data channel, in both directions. */
export const readOffer = (sdp: string, maxMessageBytes: number): Offer | OfferProblem => {
  if (sdp.length > maxOfferCharacters) return problem(`must be at most ${maxOfferCharacters} characters`)
  const lines = sdp.trimEnd().split(/\r?\n/)
  if (lines.length > maxOfferLines) return problem(`must be at most ${maxOfferLines} lines`)
  if (lines[0] !== "v=0") return problem("must be a session description (SDP), which begins with v=0")
  if (lines.some((line) => !lineForm.test(line))) return problem("has a line that is no SDP")
  const [session, ...media] = sectionsOf(lines)
  const kinds = media.map((section) => section.media.split(" ")[0])
  if (kinds.includes("video")) return problem("must have no video section: this node speaks and listens only")
  const audios = media.filter((_, at) => kinds[at] === "audio")
  const channels = media.filter((_, at) => kinds[at] === "application")
  const [audio] = audios
  const [channel] = channels
  if (audio === undefined) return problem("must have an audio section")
  if (channel === undefined) return problem("must have a data channel (m=application)")
  if (media.length > 2) return problem("must have one audio section and one data channel, and nothing else")
  if (!/^audio \d{1,5} UDP\/TLS\/RTP\/SAVPF( |$)/.test(audio.media))
    return problem("must have audio over UDP/TLS/RTP/SAVPF")
  if (!/^application \d{1,5} UDP\/DTLS\/SCTP webrtc-datachannel$/.test(channel.media))
    return problem("must have a data channel over UDP/DTLS/SCTP")
  const payloadType = opusOf(audio)
  if (payloadType === undefined) return problem("must offer Opus (opus/48000/2)")
  if (!audio.lines.includes("a=rtcp-mux")) return problem("must have a=rtcp-mux")
  const transport: Array<string> = []
  for (const name of Object.keys(transportForms) as Array<TransportAttribute>) {
    const value = transportValue([session, ...media], name)
    if (typeof value !== "string") return value
    transport.push(`a=${name}:${value}`)
  }
  const [audioMid, channelMid] = [midOf(audio), midOf(channel)]
  if (typeof audioMid !== "string") return audioMid
  if (typeof channelMid !== "string") return channelMid
  if (audioMid === channelMid) return problem("must have a different a=mid in each section")
  const ssrc = ssrcOf(audio)
  const direction = directionOf(audio, session)
  const written = {
    audio: [
      `m=audio 9 UDP/TLS/RTP/SAVPF ${payloadType}`,
      "c=IN IP4 0.0.0.0",
      `a=mid:${audioMid}`,
      `a=${direction}`,
      "a=rtcp-mux",
      `a=rtpmap:${payloadType} opus/48000/2`,
      `a=fmtp:${payloadType} minptime=10;useinbandfec=1`,
      ...(ssrc === undefined ? [] : [`a=ssrc:${ssrc} cname:caller`]),
    ],
    application: [
      "m=application 9 UDP/DTLS/SCTP webrtc-datachannel",
      "c=IN IP4 0.0.0.0",
      `a=mid:${channelMid}`,
      "a=sendrecv",
      "a=sctp-port:5000",
      `a=max-message-size:${maxMessageBytes}`,
    ],
  }
  const inOrder = kinds[0] === "audio" ? ["audio", "application"] : ["application", "audio"]
  const mids = kinds[0] === "audio" ? [audioMid, channelMid] : [channelMid, audioMid]
  const all = [
    "v=0",
    "o=- 1 1 IN IP4 0.0.0.0",
    "s=-",
    "t=0 0",
    `a=group:BUNDLE ${mids.join(" ")}`,
    ...transport,
    ...inOrder.flatMap((kind) => written[kind as keyof typeof written]),
  ]
  return { sdp: `${all.join("\r\n")}\r\n`, payloadType, ssrc }
}
