// The session description with which a call is answered, made of what the WebRTC library writes. Its candidates are replaced by the addresses
// of this node, and the media stream and source of its audio are named: without them a browser has a track that belongs to no stream, and
// plays nothing. Pure.

interface AnswerTerms {
  /** The source of the audio that this node sends. */
  readonly ssrc: number
  /** IP addresses, as text, at which the node can be reached. */
  readonly addresses: ReadonlyArray<string>
  /** UDP port of all calls. */
  readonly port: number
}

/** Lines of the library that are replaced. The msid and the source are copies of the caller's. */
const replaced = /^a=(?:candidate|end-of-candidates|msid|msid-semantic|ssrc|ssrc-group)(?::|$)/

/** The priority of the first host candidate (RFC 8445 5.1.2.1); later ones have less. */
const hostPriority = 2_122_317_823

export const finishedAnswer = (sdp: string, { addresses, port, ssrc }: AnswerTerms): string => {
  const lines = sdp
    .split(/\r?\n/)
    .filter((line) => line !== "" && !replaced.test(line))
    // The port of a section is that of its candidates, and 9 stands for none.
    .map((line) => line.replace(/^(m=(?:audio|application)) \d+ /, "$1 9 "))
  const candidates = addresses.map(
    (address, at) => `a=candidate:${at + 1} 1 UDP ${hostPriority - at} ${address} ${port} typ host`,
  )
  const out: Array<string> = []
  let kind = ""
  let sections = 0
  const endSection = (): void => {
    if (kind === "audio")
      out.push(
        "a=msid:edgewise answer",
        `a=ssrc:${ssrc} cname:edgewise`,
        `a=ssrc:${ssrc} msid:edgewise answer`,
      )
    // The sections are bundled: candidates of the first one are those of all.
    if (sections === 1) out.push(...candidates, "a=end-of-candidates")
  }
  for (const line of lines) {
    if (line.startsWith("m=")) {
      endSection()
      sections++
      kind = /^m=(\w+)/.exec(line)?.[1] ?? ""
    }
    out.push(line)
  }
  endSection()
  return `${out.join("\r\n")}\r\n`
}
