// What Linux tells of processors, cores and container limits, as recorded texts; and what is made of it.
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import {
  coreThreads,
  type MachineCores,
  machineCores,
  mostThreads,
  parseCpuList,
  threadCounts,
} from "#domain/threads/MachineCores.ts"

const siblings = "/sys/devices/system/cpu"
const status = (list: string) =>
  `Name:\tnode\nCpus_allowed:\tff\nCpus_allowed_list:\t${list}\nMems_allowed:\t1\n`
const machine = (files: Readonly<Record<string, string>>, processors = 3): MachineCores =>
  machineCores((path) => files[path], processors)

describe("a machine's processors", () => {
  it.each([
    ["0-3,8,10-11", [0, 1, 2, 3, 8, 10, 11]],
    ["5\n", [5]],
    ["3,1-2,2", [1, 2, 3]],
    ["", undefined],
    ["a-b", undefined],
    ["0-", undefined],
    ["0-999999", undefined],
    [undefined, undefined],
  ])("reads the list %j", (text, cpus) => expect(parseCpuList(text)).toEqual(cpus))

  it("counts the affinity mask, and two hardware threads of a core as one core", () => {
    const files = {
      "/proc/self/status": status("0-3,5"),
      [`${siblings}/cpu0/topology/core_cpus_list`]: "0,4\n",
      [`${siblings}/cpu1/topology/core_cpus_list`]: "1,5\n",
      [`${siblings}/cpu2/topology/thread_siblings_list`]: "2,6\n",
      [`${siblings}/cpu3/topology/core_cpus_list`]: "3,7\n",
      [`${siblings}/cpu5/topology/core_cpus_list`]: "1,5\n",
    }
    expect(machine(files)).toEqual({ hardwareThreads: 5, cores: 4, quota: undefined })
  })

  it("takes every processor for a core where the topology is missing or makes no sense", () => {
    const files = {
      "/proc/self/status": status("0-2"),
      [`${siblings}/cpu0/topology/core_cpus_list`]: "7-9",
      [`${siblings}/cpu1/topology/core_cpus_list`]: "?",
    }
    expect(machine(files)).toEqual({ hardwareThreads: 3, cores: 3, quota: undefined })
  })

  it("believes the runtime where there are no such files", () =>
    expect(machine({}, 8)).toEqual({ hardwareThreads: 8, cores: 8, quota: undefined }))

  it.each<[string, Readonly<Record<string, string>>, number | undefined]>([
    [
      "version 2, own namespace",
      { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "150000 100000\n" },
      1.5,
    ],
    [
      "version 2, no limit",
      { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "max 100000\n" },
      undefined,
    ],
    [
      "version 2, the lowest of the groups above",
      {
        "/proc/self/cgroup": "0::/kube.slice/pod1/app\n",
        "/sys/fs/cgroup/kube.slice/pod1/app/cpu.max": "max 100000\n",
        "/sys/fs/cgroup/kube.slice/pod1/cpu.max": "400000 100000\n",
        "/sys/fs/cgroup/kube.slice/cpu.max": "800000 100000\n",
      },
      4,
    ],
    [
      "version 2, the host's path inside a container",
      { "/proc/self/cgroup": "0::/../../docker/abc\n", "/sys/fs/cgroup/cpu.max": "50000 100000\n" },
      0.5,
    ],
    [
      "version 1",
      {
        "/proc/self/cgroup": "12:pids:/docker/abc\n4:cpu,cpuacct:/docker/abc\n",
        "/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_quota_us": "250000\n",
        "/sys/fs/cgroup/cpu,cpuacct/docker/abc/cpu.cfs_period_us": "100000\n",
        "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us": "-1\n",
        "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
      },
      2.5,
    ],
    [
      "version 1, the container's own mount",
      {
        "/proc/self/cgroup": "4:cpuacct,cpu:/docker/abc\n",
        "/sys/fs/cgroup/cpu/cpu.cfs_quota_us": "300000\n",
        "/sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
      },
      3,
    ],
    ["nonsense", { "/proc/self/cgroup": "0::/\n", "/sys/fs/cgroup/cpu.max": "a lot\n" }, undefined],
  ])("reads the container's limit: %s", (_name, files, quota) =>
    expect(machine({ "/proc/self/status": status("0-7"), ...files }).quota).toBe(quota),
  )
})

const machines = fc
  .record({
    hardwareThreads: fc.integer({ min: 1, max: 512 }),
    cores: fc.integer({ min: 1, max: 512 }),
    quota: fc.option(fc.double({ min: 0.01, max: 600, noNaN: true }), { nil: undefined }),
  })
  .map((one): MachineCores => ({ ...one, cores: Math.min(one.cores, one.hardwareThreads) }))

describe("thread counts", () => {
  it("are never 0 and never more than there are", () =>
    fc.assert(
      fc.property(machines, (one) => {
        const most = mostThreads(one)
        expect(most).toBeGreaterThanOrEqual(1)
        expect(most).toBeLessThanOrEqual(Math.max(1, Math.min(one.hardwareThreads, one.quota ?? Infinity)))
        const counts = threadCounts(one)
        expect(counts[0]).toBe(1)
        expect(counts.at(-1)).toBe(most)
        expect(counts).toContain(coreThreads(one))
        expect(counts).toEqual([...new Set(counts)].sort((a, b) => a - b))
        expect(counts.length).toBeLessThanOrEqual(11)
      }),
    ))

  it.each<[MachineCores, ReadonlyArray<number>]>([
    [{ hardwareThreads: 1, cores: 1, quota: undefined }, [1]],
    [{ hardwareThreads: 2, cores: 1, quota: undefined }, [1, 2]],
    [{ hardwareThreads: 12, cores: 6, quota: undefined }, [1, 2, 4, 6, 12]],
    [{ hardwareThreads: 8, cores: 8, quota: 2.9 }, [1, 2]],
    [{ hardwareThreads: 8, cores: 8, quota: 0.5 }, [1]],
  ])("%j", (one, counts) => expect(threadCounts(one)).toEqual(counts))
})
