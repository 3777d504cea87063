// The system call filter of confined processes, as a classic BPF program for the kernel. Refused calls fail with "not
// permitted", as in a container; all others are allowed. Pure; `launch.pl` installs it.
import type { Confinement } from "#domain/process/Confinement.ts"

/** The numbers of a system call; an old one does not exist on arm64. */
type Numbers = readonly [x64: number, arm64?: number]

const both = (number: number): Numbers => [number, number]

/**
 * Calls that are refused. Those from `chmod` on change modes and attributes of files, which Landlock does not restrict: a process of the
 * node's user could otherwise open the node's secrets to other users.
 */
const refused: Readonly<Record<string, Numbers>> = {
  pidfd_getfd: both(438),
  io_uring_setup: both(425),
  io_uring_enter: both(426),
  io_uring_register: both(427),
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  unshare: [272, 97],
  setns: [308, 268],
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  mount: [165, 40],
  open_by_handle_at: [304, 265],
  chmod: [90],
  fchmod: [91, 52],
  fchmodat: [268, 53],
  chown: [92],
  fchown: [93, 55],
  lchown: [94],
  fchownat: [260, 54],
  utime: [132],
  utimes: [235],
  futimesat: [261],
  utimensat: [280, 88],
  setxattr: [188, 5],
  lsetxattr: [189, 6],
  fsetxattr: [190, 7],
  removexattr: [197, 14],
  lremovexattr: [198, 15],
  fremovexattr: [199, 16],
  fchmodat2: both(452),
  setxattrat: both(463),
  removexattrat: both(466),
  file_setattr: both(469),
}

/**
 * Calls that act on the process or thread that their arguments name: the numbers, and the values of the first arguments with which they are
 * permitted. 0 is the calling thread, for prlimit64 its process. The first argument of setpriority and ioprio_set is the kind of the second:
 * PRIO_PROCESS, IOPRIO_WHO_PROCESS.
 */
const onItself: Readonly<Record<string, readonly [Required<Numbers>, ...values: ReadonlyArray<number>]>> = {
  prlimit64: [[302, 261], 0],
  sched_setaffinity: [[203, 122], 0],
  sched_setattr: [[314, 274], 0],
  sched_setparam: [[142, 118], 0],
  sched_setscheduler: [[144, 119], 0],
  setpriority: [[141, 140], 0, 0],
  ioprio_set: [[251, 30], 1, 0],
}

/** By architecture: its place in `Numbers`, AUDIT_ARCH_* of linux/audit.h, and the numbers of calls that are refused with some arguments. */
const machines = {
  x64: { at: 0, arch: 0xc000_003e, clone: 56, socket: 41, ioctl: 16 },
  arm64: { at: 1, arch: 0xc000_00b7, clone: 220, socket: 198, ioctl: 29 },
} as const

/**
 * clone3 keeps its flags in memory, which a filter cannot read. It is answered as unknown, so the C library uses
 * `clone`, whose flags are in a register.
 */
const clone3 = 435
/** The CLONE_NEW* flags: namespaces. */
const namespaces = 0x7e02_0000
/** AF_UNIX and AF_NETLINK. */
const localFamilies = [1, 16]
const netlinkFamily = [16]
/** AF_INET and AF_INET6. */
const internetFamilies = [2, 10]
/** SOCK_DGRAM, in the lower bits of a socket's type. */
const datagram = 2
const typeBits = 0x0f

/** FS_IOC_SETFLAGS, FS_IOC32_SETFLAGS, FS_IOC_FSSETXATTR and FS_IOC_ENABLE_VERITY of linux/fs.h and linux/fsverity.h. */
const attributeCommands = [0x4008_6602, 0x4004_6602, 0x401c_5820, 0x4080_6685]

const permit = 0x7fff_0000
const fail = (errno: number): number => 0x0005_0000 | errno
const notPermitted = fail(1)
const noSuchCall = fail(38)

const load = 0x20
const and = 0x54
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

/** Loads the lower half of an argument, counted from 0; both architectures are little-endian. */
const loadArgument = (nth: number): Instruction => loadAt(16 + 8 * nth)

/** Refuses a call unless its first arguments have these values. */
const onlyWith = (number: number, values: ReadonlyArray<number>): ReadonlyArray<Instruction> =>
  onCall(number, [
    ...values.flatMap(
      (value, nth): ReadonlyArray<Instruction> => [
        loadArgument(nth),
        [equal, value, 1, 0],
        say(notPermitted),
      ],
    ),
    say(permit),
  ])

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
  if (machine !== "x64" && machine !== "arm64") return undefined
  const { arch, at, clone, ioctl, socket } = machines[machine]
  const families = sockets === "none" ? [] : sockets === "local" ? localFamilies : netlinkFamily
  /** Each family of which datagram sockets are permitted: its instructions load the type, but both ways end there. */
  const datagrams = (sockets === "datagrams" ? internetFamilies : []).flatMap(
    (family): Array<Instruction> => [
      [equal, family, 0, 5],
      loadArgument(1),
      [and, typeBits, 0, 0],
      [equal, datagram, 0, 1],
      say(permit),
      say(notPermitted),
    ],
  )
  return encode([
    loadAt(4),
    [equal, arch, 1, 0],
    say(noSuchCall),
    loadAt(0),
    // The second range of call numbers of x64 (x32).
    ...(machine === "x64" ? when(atLeast, 0x4000_0000, noSuchCall) : []),
    ...when(equal, clone3, noSuchCall),
    ...Object.values(refused)
      .map((numbers) => numbers[at])
      .filter((number) => number !== undefined)
      .flatMap((number) => when(equal, number, notPermitted)),
    ...onCall(clone, [loadArgument(0), ...when(anyBit, namespaces, notPermitted), say(permit)]),
    ...onCall(socket, [
      loadArgument(0),
      ...families.flatMap((family) => when(equal, family, permit)),
      ...datagrams,
      say(notPermitted),
    ]),
    ...onCall(ioctl, [
      loadArgument(1),
      ...attributeCommands.flatMap((command) => when(equal, command, notPermitted)),
      say(permit),
    ]),
    ...Object.values(onItself).flatMap(([call, ...values]) => onlyWith(call[at], values)),
    say(permit),
  ])
}
