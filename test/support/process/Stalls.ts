// With TEST_STALLS set to a seed, processes of a run of the tests stand still at random moments, as on a machine that others use: workers with the
// nodes in them, engines, decoders, browsers and databases. What then fails could fail by chance. Linux only.
// vitest calls it around the whole run, in its main process, which goes on: it only reports.
import { Random } from "#harness/random/Random.ts"
import { descendants, signalIfRunning } from "./ChildProcesses.ts"

/** Milliseconds between two stalls, from half to one and a half of it. */
const everyMs = 300
/** One of these, from half to all of it. Far below what ends an engine: 15 s of silence. */
const stallsMs = [50, 200, 500, 1_500] as const

export default (): (() => void) | undefined => {
  const seed = process.env.TEST_STALLS
  if (seed === undefined) return undefined
  const random = new Random(Number(seed), 0)
  const stopped = new Map<number, NodeJS.Timeout>()
  let count = 0
  let next: NodeJS.Timeout
  const resume = (pid: number): void => {
    stopped.delete(pid)
    signalIfRunning(pid, "SIGCONT")
  }
  const stall = (): void => {
    const pids = descendants(process.pid).filter((pid) => !stopped.has(pid))
    const pid = pids[random.below(pids.length)]
    const stallMs = (random.pick(stallsMs) * (500 + random.below(500))) / 1000
    if (pid !== undefined && signalIfRunning(pid, "SIGSTOP")) {
      stopped.set(pid, setTimeout(resume, stallMs, pid))
      count++
    }
    next = setTimeout(stall, (everyMs * (500 + random.below(1000))) / 1000)
  }
  stall()
  return () => {
    clearTimeout(next)
    for (const [pid, timer] of stopped) {
      clearTimeout(timer)
      resume(pid)
    }
    console.log(`${count} stalls of processes, seed ${seed}`)
  }
}
