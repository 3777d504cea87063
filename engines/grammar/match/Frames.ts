// Where a reply is in a grammar. Calls that are not finished form a stack of frames; stacks share their lower parts, and
// equal stacks are one object, so comparing them is comparing objects and a deep stack costs nothing to copy.

/** What follows when a called automaton has ended. */
export class Frame {
  /** Undefined for the lowest frame. */
  readonly parent: Frame | undefined
  /** Number of the call. */
  readonly call: number
  /** State after the last of the calls. */
  readonly to: number
  /** How often the automaton has to be and may be called again. */
  readonly least: number
  readonly most: number
  /** Bytes of the shortest end of the reply from where the called automaton has ended. */
  readonly after: number
  /** Number of the step that pushed this frame last, see Machine. */
  pushed = 0
  readonly children = new Map<number, Frame>()
  readonly places = new Map<number, Place>()
  /** Tokens of the shortest end from here; known once it was counted. */
  tokens = -1

  constructor(
    parent: Frame | undefined,
    from: { readonly call: number; readonly to: number; readonly least: number; readonly most: number },
    after: number,
  ) {
    this.parent = parent
    this.call = from.call
    this.to = from.to
    this.least = from.least
    this.most = from.most
    this.after = after
  }
}

/** A state within a frame: one way in which the reply so far can be read. */
export class Place {
  readonly frame: Frame
  readonly state: number
  readonly id: number
  /** Bytes of the shortest end of the reply. */
  readonly shortest: number
  /** The positions that consist of this place only, see `Position.kind`. */
  readonly alone: Array<Position | undefined> = []

  constructor(frame: Frame, state: number, id: number, shortest: number) {
    this.frame = frame
    this.state = state
    this.id = id
    this.shortest = shortest
  }
}

/** All ways in which the reply so far can be read. */
export class Position {
  /** Places that can read another byte. */
  readonly places: ReadonlyArray<Place>
  /** The reply may end here. */
  readonly complete: boolean
  /** True if what follows also depends on frames that were left out, see `Machine.cut`. */
  readonly open: boolean
  /** Any token may follow, also one without text. */
  readonly free: boolean
  /** Bytes of the shortest end of the reply, by bytes that are tokens by themselves. */
  readonly shortest: number
  /** Bytes that may follow: one bit for each. */
  readonly bytes: Uint32Array
  /** Number of bytes that may follow; the byte itself if it is one, else -1. */
  readonly choices: number
  readonly only: number
  readonly epoch: number
  /** The positions after each byte, as far as they are known. */
  next: Array<Position | undefined> | undefined
  afterOnly: Position | undefined
  /** The last walk that judged this position, and what it found, see Masks. */
  walk = 0
  allowed = false
  /** Tokens that must follow, once they were found, see Forced. */
  forced: ReadonlyArray<number> | undefined
  /** Tokens of the shortest end; known once it was counted. */
  tokens = -1

  constructor(places: ReadonlyArray<Place>, kind: number, free: boolean, bytes: Uint32Array, epoch: number) {
    this.places = places
    this.complete = (kind & positionKind.complete) !== 0
    this.open = (kind & positionKind.open) !== 0
    this.free = free
    this.bytes = bytes
    this.epoch = epoch
    this.shortest = this.complete
      ? 0
      : places.reduce((least, place) => Math.min(least, place.shortest), Number.POSITIVE_INFINITY)
    let choices = 0
    let only = -1
    for (let byte = 0; byte < 256; byte++)
      if ((bytes[byte >> 5]! >>> (byte & 31)) & 1) {
        choices++
        only = byte
      }
    this.choices = choices
    this.only = choices === 1 ? only : -1
  }
}

export const positionKind = { complete: 1, open: 2 } as const
