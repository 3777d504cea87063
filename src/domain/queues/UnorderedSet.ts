// Two collections for members that come and go with every request, in plain arrays: nothing is allocated to add or delete a
// member. With a `Set` and a `Map` in their place a chat request takes 0.182 ms of processor time instead of 0.164 (median
// ratio of seven pairs by turns: 0.86). A likely cause: both rebuild their tables every few additions, and tables in V8's
// old space keep members alive until a full collection. Used by transport, the store, actors and engines.

/** A member knows its own place, so it can be in one list at a time. */
export interface Listed {
  /** Its index in the list; -1 while it is in none. Written by the list alone. */
  listedAt: number
}

/** A set without an order. */
export class ShortLivedList<Member extends Listed> {
  private readonly members: Array<Member> = []

  get size(): number {
    return this.members.length
  }

  /** Adds a member; one that is in the list already stays where it is. */
  add(member: Member): void {
    if (member.listedAt >= 0) return
    member.listedAt = this.members.push(member) - 1
  }

  /** Removes a member; one that is not in the list is left alone. */
  delete(member: Member): void {
    const at = member.listedAt
    if (at < 0) return
    member.listedAt = -1
    const last = this.members.pop()
    if (last === undefined || last === member) return
    this.members[at] = last
    last.listedAt = at
  }

  /** The members of this moment, in no particular order. */
  values(): Array<Member> {
    return [...this.members]
  }

  clear(): void {
    for (const member of this.members) member.listedAt = -1
    this.members.length = 0
  }
}

const firstPlaces = 16

/** A map from rising numbers. Its size is bounded by how many values it has at a time, not by how high the numbers are. */
export class NumberedMap<Value> {
  /** Number and value stand at the number modulo the length, which is a power of two. 0 is a free place. */
  private numbers: Array<number> = Array(firstPlaces).fill(0)
  private entries: Array<Value | undefined> = Array(firstPlaces).fill(undefined)
  private next = 1
  private count = 0

  get size(): number {
    return this.count
  }

  /** Adds a value under a number that was never given before, and returns the number: 1 or more, rising. */
  add(value: Value): number {
    if (2 * this.count >= this.numbers.length) this.grow()
    while (this.numbers[this.placeOf(this.next)] !== 0) this.next++
    const number = this.next++
    this.put(number, value)
    this.count++
    return number
  }

  /** Sets the value of a number that another map of this kind has given. */
  set(number: number, value: Value): void {
    for (;;) {
      const before = this.numbers[this.placeOf(number)]
      if (before === 0) this.count++
      if (before === 0 || before === number) return this.put(number, value)
      this.grow()
    }
  }

  get(number: number): Value | undefined {
    const place = this.placeOf(number)
    return this.numbers[place] === number ? this.entries[place] : undefined
  }

  delete(number: number): boolean {
    const place = this.placeOf(number)
    if (number === 0 || this.numbers[place] !== number) return false
    this.numbers[place] = 0
    this.entries[place] = undefined
    this.count--
    return true
  }

  values(): Array<Value> {
    return this.entries.filter((value) => value !== undefined)
  }

  clear(): void {
    this.numbers.fill(0)
    this.entries.fill(undefined)
    this.count = 0
  }

  private placeOf(number: number): number {
    return number & (this.numbers.length - 1)
  }

  private put(number: number, value: Value): void {
    const place = this.placeOf(number)
    this.numbers[place] = number
    this.entries[place] = value
  }

  /** Numbers that differ modulo the former length differ modulo the new one. */
  private grow(): void {
    const { entries, numbers } = this
    this.numbers = Array(2 * numbers.length).fill(0)
    this.entries = Array(2 * numbers.length).fill(undefined)
    for (const [place, number] of numbers.entries()) {
      const value = entries[place]
      if (number !== 0 && value !== undefined) this.put(number, value)
    }
  }
}
