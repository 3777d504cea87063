// The system call filter of confined processes, as a classic BPF program for the kernel. Refused calls fail with "not
// permitted", as in a container; all others are allowed. Pure; `launch.pl` installs it.
import type { Confinement } from "#domain/process/Confinement.ts"

interface Machine {
  /** AUDIT_ARCH_* of linux/audit.h. */
  readonly arch: number
  readonly clone: number
  readonly socket: number
  /** System call numbers that are refused. */
  readonly refused: Readonly<Record<string, number>>
}

/** Refused calls whose numbers are the same on every architecture. */
const everywhere = { pidfd_getfd: 438, io_uring_setup: 425, io_uring_enter: 426, io_uring_register: 427 }

const machines: Readonly<Record<string, Machine>> = {
  x64: {
    arch: 0xc000_003e,
    clone: 56,
    socket: 41,
    refused: {
      ...everywhere,
      ptrace: 101,
      process_vm_readv: 310,
      process_vm_writev: 311,
      bpf: 321,
      perf_event_open: 298,
      userfaultfd: 323,
      unshare: 272,
      setns: 308,
      add_key: 248,
      request_key: 249,
      keyctl: 250,
      mount: 165,
      open_by_handle_at: 304,
    },
  },
  arm64: {
    arch: 0xc000_00b7,
    clone: 220,
    socket: 198,
    refused: {
      ...everywhere,
      ptrace: 117,
      process_vm_readv: 270,
      process_vm_writev: 271,
      bpf: 280,
      perf_event_open: 241,
      userfaultfd: 282,
      unshare: 97,
      setns: 268,
      add_key: 217,
      request_key: 218,
      keyctl: 219,
      mount: 40,
      open_by_handle_at: 265,
    },
  },
}

/**
 * clone3 keeps its flags in memory, which a filter cannot read. It is answered as unknown, so the C library uses
 * `clone`, whose flags are in a register.
 */
const clone3 = 435
/** The CLONE_NEW* flags: namespaces. */
const namespaces = 0x7e02_0000
/** AF_UNIX and AF_NETLINK. */
const localFamilies = [1, 16]

const permit = 0x7fff_0000
const fail = (errno: number): number => 0x0005_0000 | errno
const notPermitted = fail(1)
const noSuchCall = fail(38)

const load = 0x20
const equal = 0x15
const atLeast = 0x35
const anyBit = 0x45
const answer = 0x06

type Instruction = readonly [code: number, value: number, ifTrue: number, ifFalse: number]

const loadAt = (offset: number): Instruction => [load, offset, 0, 0]
const say = (value: number): Instruction => [answer, value, 0, 0]
/** Returns `value` if the test holds, else continues with the next instruction. */
const when = (test: number, operand: number, value: number): ReadonlyArray<Instruction> => [
  [test, operand, 0, 1],
  say(value),
]
/** Skips `body` unless the system call has this number. */
const onCall = (number: number, body: ReadonlyArray<Instruction>): ReadonlyArray<Instruction> => [
  [equal, number, 0, body.length],
  ...body,
]

/** Offset of the first argument's lower half; both architectures are little-endian. */
const firstArgument = loadAt(16)

const encode = (program: ReadonlyArray<Instruction>): Buffer => {
  const bytes = Buffer.alloc(8 * program.length)
  for (const [nth, [code, value, ifTrue, ifFalse]] of program.entries()) {
    bytes.writeUInt16LE(code, 8 * nth)
    bytes.writeUInt8(ifTrue, 8 * nth + 2)
    bytes.writeUInt8(ifFalse, 8 * nth + 3)
    bytes.writeUInt32LE(value, 8 * nth + 4)
  }
  return bytes
}

/** The program's bytes. Undefined for an architecture whose numbers are not listed here. */
export const seccompProgram = (
  machine: string,
  { sockets }: Pick<Confinement, "sockets">,
): Buffer | undefined => {
  const known = machines[machine]
  if (known === undefined) return undefined
  const families = sockets === "none" ? [] : localFamilies
  return encode([
    loadAt(4),
    [equal, known.arch, 1, 0],
    say(noSuchCall),
    loadAt(0),
    // The second range of call numbers of x64 (x32).
    ...(machine === "x64" ? when(atLeast, 0x4000_0000, noSuchCall) : []),
    ...when(equal, clone3, noSuchCall),
    ...Object.values(known.refused).flatMap((number) => when(equal, number, notPermitted)),
    ...onCall(known.clone, [firstArgument, ...when(anyBit, namespaces, notPermitted), say(permit)]),
    ...onCall(known.socket, [
      firstArgument,
      ...families.flatMap((family) => when(equal, family, permit)),
      say(notPermitted),
    ]),
    say(permit),
  ])
}
