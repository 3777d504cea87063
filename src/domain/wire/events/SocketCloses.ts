// Close codes of the three sockets, with the reasons that each may have (protocol 16.1). Data only.

export type CloseCodes = Readonly<Record<number, ReadonlyArray<string | RegExp>>>

/** Sent by the listener to any socket. A failure of the code has the code 1011 and no reason. */
const everySocket: CloseCodes = {
  1001: ["server is shutting down", ""],
  1008: [
    "credential revoked",
    "session token expired",
    "too many small messages",
    "too many messages at once",
  ],
  1009: [/^message larger than \d+ bytes$/, "messages come faster than they are read"],
  1011: [""],
  1013: ["reader too slow"],
}

const withEvery = (own: CloseCodes): CloseCodes => {
  const codes = new Set([...Object.keys(everySocket), ...Object.keys(own)].map(Number))
  return Object.fromEntries(
    [...codes].map((code) => [code, [...(everySocket[code] ?? []), ...(own[code] ?? [])]]),
  )
}

export const completionsCloses = withEvery({ 1008: ["too many messages"] })

export const liveCloses = withEvery({
  1000: ["", "idle"],
  1003: ["not 16-bit PCM", "unknown message"],
  1011: ["transcription failed", "failed"],
  4008: ["session limit"],
})

/** A telephone call that cannot begin has the refusal's text as its reason. */
export const twilioCloses = withEvery({
  1000: ["idle", "session expired"],
  1008: ["too many events", "cost limit", "replaced", /^.{1,120}$/],
  1011: ["failed"],
})

export const realtimeCloses = withEvery({
  // Those behind the second are of the sideband of a call.
  1000: [
    "idle",
    "session expired",
    "the caller has left",
    "the call could not be connected",
    "hung up",
    "messages come faster than they are read",
    "reader too slow",
  ],
  1008: ["too many events", "cost limit", "replaced"],
  1011: ["failed", "the process of calls has ended"],
})
