// The filter's program, run by a small interpreter, for both architectures: the machine of a test has only one of them.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { seccompProgram } from "#confine/Seccomp.ts"

const permit = 0x7fff_0000
const notPermitted = 0x0005_0001
const noSuchCall = 0x0005_0026

/** What the kernel does with a call, by the program's instructions (linux/filter.h). */
const verdict = (
  program: Buffer,
  arch: number,
  call: number,
  given: ReadonlyArray<number | bigint>,
): number => {
  const data = Buffer.alloc(64)
  data.writeUInt32LE(call, 0)
  data.writeUInt32LE(arch, 4)
  for (const [nth, value] of given.entries())
    data.writeBigUInt64LE(BigInt.asUintN(64, BigInt(value)), 16 + 8 * nth)
  let accumulator = 0
  for (let at = 0; at < program.length; at += 8) {
    const code = program.readUInt16LE(at)
    const value = program.readUInt32LE(at + 4)
    if (code === 0x06) return value
    if (code === 0x20) {
      accumulator = data.readUInt32LE(value)
      continue
    }
    if (code === 0x54) {
      accumulator = (accumulator & value) >>> 0
      continue
    }
    const tests: Readonly<Record<number, boolean>> = {
      21: accumulator === value,
      53: accumulator >= value,
      69: (accumulator & value) !== 0,
    }
    const holds = tests[code]
    if (holds === undefined) throw new Error(`instruction ${code} is not known here`)
    at += 8 * program.readUInt8(at + (holds ? 2 : 3))
  }
  throw new Error("the program ends without an answer")
}

/** Numbers of asm/unistd_64.h and asm-generic/unistd.h. */
const machines = {
  x64: {
    arch: 0xc000_003e,
    // chmod, fchmod, fchmodat, chown, fchown, lchown, fchownat, utime, utimes, futimesat, utimensat, the six of xattr
    metadata: [90, 91, 268, 92, 93, 94, 260, 132, 235, 261, 280, 188, 189, 190, 197, 198, 199],
    prlimit64: 302,
    scheduling: [203, 314, 142, 144],
    setpriority: 141,
    ioprioSet: 251,
    ioctl: 16,
    socket: 41,
    others: { read: 0, write: 1, openat: 257, futex: 202, getpriority: 140, fgetxattr: 193 },
  },
  arm64: {
    arch: 0xc000_00b7,
    // fchmod, fchmodat, fchown, fchownat, utimensat, the six of xattr
    metadata: [52, 53, 55, 54, 88, 5, 6, 7, 14, 15, 16],
    prlimit64: 261,
    scheduling: [122, 274, 118, 119],
    setpriority: 140,
    ioprioSet: 30,
    ioctl: 29,
    socket: 198,
    others: { read: 63, write: 64, openat: 56, futex: 98, getpriority: 141, fgetxattr: 10 },
  },
}

/** fchmodat2, setxattrat, removexattrat, file_setattr: the same on both. */
const newer = [452, 463, 466, 469]

const anyArgument = fc.bigInt({ min: 0n, max: 2n ** 64n - 1n })
const anyArguments = fc.array(anyArgument, { minLength: 6, maxLength: 6 })
/** Process ids other than 0 in the half of the register that the kernel reads. */
const otherProcess = fc.integer({ min: -1, max: 4_194_304 }).filter((pid) => pid !== 0)

describe.each(Object.entries(machines))("the filter of %s", (name, machine) => {
  const program = seccompProgram(name, { sockets: "none" })!
  const answer = (call: number, given: ReadonlyArray<number | bigint> = []) =>
    verdict(program, machine.arch, call, given)

  it("refuses changes of modes, owners, times and attributes, whatever their arguments are", () => {
    fc.assert(
      fc.property(fc.constantFrom(...machine.metadata, ...newer), anyArguments, (call, given) => {
        expect(answer(call, given)).toBe(notPermitted)
      }),
    )
    for (const command of [0x4008_6602, 0x4004_6602, 0x401c_5820, 0x4080_6685])
      expect(answer(machine.ioctl, [3, command])).toBe(notPermitted)
    // FIONREAD, TCGETS
    for (const command of [0x541b, 0x5401]) expect(answer(machine.ioctl, [3, command])).toBe(permit)
  })

  it("permits limits, processors and priorities of the caller, and of no other process", () => {
    const ofFirst = [machine.prlimit64, ...machine.scheduling]
    fc.assert(
      fc.property(fc.constantFrom(...ofFirst), otherProcess, anyArguments, (call, pid, given) => {
        expect(answer(call, [pid, ...given.slice(1)])).toBe(notPermitted)
        expect(answer(call, [0, ...given.slice(1)])).toBe(permit)
      }),
    )
    fc.assert(
      fc.property(otherProcess, (pid) => {
        expect(answer(machine.setpriority, [0, pid, 19])).toBe(notPermitted)
        expect(answer(machine.ioprioSet, [1, pid, 0])).toBe(notPermitted)
      }),
    )
    expect(answer(machine.setpriority, [0, 0, 5])).toBe(permit)
    expect(answer(machine.ioprioSet, [1, 0, 0])).toBe(permit)
    // Process groups and users, of which the gateway is a member.
    for (const kind of [1, 2]) expect(answer(machine.setpriority, [kind, 0, 19])).toBe(notPermitted)
    for (const kind of [2, 3]) expect(answer(machine.ioprioSet, [kind, 0, 0])).toBe(notPermitted)
  })

  it("permits the sockets that it is for: UDP and the machine's addresses, and no others", () => {
    const datagrams = seccompProgram(name, { sockets: "datagrams" })!
    const socket = (family: number, type: number) =>
      verdict(datagrams, machine.arch, machine.socket, [family, type])
    const [inet, inet6, unix, netlink] = [2, 10, 1, 16]
    const [stream, datagram, raw] = [1, 2, 3]
    const flags = 0x80000 | 0x800
    for (const family of [inet, inet6]) {
      expect(socket(family, datagram)).toBe(permit)
      expect(socket(family, datagram | flags)).toBe(permit)
      for (const type of [stream, raw, stream | flags]) expect(socket(family, type)).toBe(notPermitted)
    }
    expect(socket(netlink, raw)).toBe(permit)
    expect(socket(unix, datagram)).toBe(notPermitted)
    // AF_PACKET
    expect(socket(17, datagram)).toBe(notPermitted)
    for (const family of [inet, inet6, unix, netlink])
      expect(answer(machine.socket, [family, datagram])).toBe(notPermitted)
  })

  it("permits ordinary calls, and answers those of another architecture as unknown", () => {
    fc.assert(
      fc.property(fc.constantFrom(...Object.values(machine.others)), anyArguments, (call, given) => {
        expect(answer(call, given)).toBe(permit)
        expect(verdict(program, 0x4000_0003, call, given)).toBe(noSuchCall)
      }),
    )
  })
})

it("is not made for an architecture whose numbers are not known", () => {
  expect(seccompProgram("riscv64", { sockets: "none" })).toBeUndefined()
})
