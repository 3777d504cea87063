// What a step of a gateway's event loop costs on this machine, by which measured work is judged.

/** CPU time of parsing an object of as many keys as the event loop parses itself: the longest work that is meant to be one step. */
export const stepMs = (): number => {
  const json = JSON.stringify(
    Object.fromEntries(Array.from({ length: 8_000 }, (_, at) => [`key${at}`, { at }])),
  )
  const times = Array.from({ length: 9 }, () => {
    const before = process.cpuUsage()
    JSON.parse(json)
    const { system, user } = process.cpuUsage(before)
    return (system + user) / 1_000
  })
  return times.sort((a, b) => a - b)[4]!
}
