// A budget of memory that the users of a node share. What one thing holds is counted in a `Holding`, whose end gives everything
// back. Pure.

/** Whose bytes are counted together: the id of a user, or an object where each has an allowance of its own. */
type User = string | object

interface MemoryLimits {
  /** Bytes of all users together. */
  readonly node: number
  /** Bytes of one user. */
  readonly user: number
}

export class MemoryBudget {
  readonly limits: MemoryLimits
  #total = 0
  readonly #byUser = new Map<User, number>()

  constructor(limits: MemoryLimits) {
    this.limits = limits
  }

  /** Bytes that are held. */
  get held(): number {
    return this.#total
  }

  heldBy(user: User): number {
    return this.#byUser.get(user) ?? 0
  }

  /**
   * The most that any user may hold now: half of what is free. So a user who takes all that is allowed leaves two thirds of what was
   * free to the others, and one who comes late finds something.
   */
  get limit(): number {
    return Math.max(0, Math.floor(Math.min(this.limits.user, (this.limits.node - this.#total) / 2)))
  }

  /** Something that will hold memory of this user. */
  open(user: User): Holding {
    return new Holding(this, user)
  }

  /** Takes them if the user stays within `limit`. */
  take(user: User, bytes: number): boolean {
    if (bytes > 0 && this.heldBy(user) + bytes > this.limit) return false
    this.keep(user, bytes)
    return true
  }

  /** Counts them, whatever the limits. A negative number gives bytes back. */
  keep(user: User, bytes: number): void {
    this.#total += bytes
    const held = this.heldBy(user) + bytes
    if (held > 0) this.#byUser.set(user, held)
    else this.#byUser.delete(user)
  }
}

/** What one conversation, request or message holds. */
export class Holding {
  readonly #budget: MemoryBudget
  readonly #user: User
  #own = 0
  #hasEnded = false

  constructor(budget: MemoryBudget, user: User) {
    this.#budget = budget
    this.#user = user
  }

  get bytes(): number {
    return this.#own
  }

  /** The most that its user may hold in all at present. */
  get limit(): number {
    return this.#budget.limit
  }

  /** The most that may be taken now. */
  get left(): number {
    return Math.max(0, this.#budget.limit - this.#budget.heldBy(this.#user))
  }

  /** Whether its user, or all users together, hold more than they ever may. */
  get isOver(): boolean {
    const { held, limits } = this.#budget
    return this.#budget.heldBy(this.#user) > limits.user || held > limits.node
  }

  /** False if they would be too many: then nothing is taken. */
  take(bytes: number): boolean {
    if (this.#hasEnded || !this.#budget.take(this.#user, bytes)) return false
    this.#own += bytes
    return true
  }

  /** Counts what cannot be refused. */
  keep(bytes: number): void {
    if (this.#hasEnded) return
    this.#budget.keep(this.#user, bytes)
    this.#own += bytes
  }

  giveBack(bytes: number): void {
    this.keep(-Math.min(bytes, this.#own))
  }

  /** Gives everything back. It takes nothing any more. */
  end(): void {
    this.giveBack(this.#own)
    this.#hasEnded = true
  }
}
