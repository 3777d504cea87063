// The rows of pictures: computed by the tower one tile after the other, shared by all requests that show the same picture, and
// kept by content hash within a bound.
import { LRUCache } from "lru-cache"
import type { Picture } from "../../protocol/Text.ts"
import { type Tower, TowerInterrupted } from "../tower/Tower.ts"
import type { PicturePlan } from "./Families.ts"
import { planesOf } from "./Planes.ts"
import type { OpenPicture, PictureSource, TileRows } from "./Spans.ts"

interface PictureRowsOptions {
  readonly tower: Pick<Tower, "encode" | "file" | "interrupt">
  /** Bound of the rows that are kept for later requests. */
  readonly cacheBytes: number
  /** CPU threads for the tower now. */
  readonly threads: () => number
}

type Done = (rows: TileRows | Error) => void

/** One picture that some requests show at the same time. */
class Encoding {
  readonly #key: string
  readonly #rows: PictureRows
  readonly #tiles: () => ReturnType<PicturePlan["tiles"]>
  readonly #users = new Map<symbol, Map<number, Done>>()
  /** Rows that at least one user may still need. */
  readonly #held = new Map<number, TileRows>()
  #running = false

  constructor(key: string, rows: PictureRows, tiles: () => ReturnType<PicturePlan["tiles"]>) {
    this.#key = key
    this.#rows = rows
    this.#tiles = tiles
  }

  get unused(): boolean {
    return this.#users.size === 0
  }

  join(): symbol {
    const user = Symbol("user")
    this.#users.set(user, new Map())
    return user
  }

  leave(user: symbol): void {
    this.#users.delete(user)
    if (this.unused) this.#held.clear()
  }

  want(user: symbol, tile: number, done: Done): void {
    const wanted = this.#users.get(user)
    if (wanted === undefined) return
    wanted.set(tile, done)
    // Later, because the caller is not ready for an answer yet.
    queueMicrotask(() => {
      const rows = this.#find(tile)
      if (rows !== undefined) this.#answer(tile, rows)
      else if (!this.#running) void this.#run(tile)
    })
  }

  #find(tile: number): TileRows | undefined {
    const rows = this.#held.get(tile) ?? this.#rows.cached(this.#key, tile)
    if (rows !== undefined) this.#held.set(tile, rows)
    return rows
  }

  #answer(tile: number, rows: TileRows): void {
    for (const wanted of this.#users.values()) {
      const done = wanted.get(tile)
      wanted.delete(tile)
      done?.(rows)
    }
  }

  #fail(cause: unknown): void {
    const failure = cause instanceof Error ? cause : new Error(String(cause))
    for (const wanted of this.#users.values()) {
      const waiting = [...wanted.values()]
      wanted.clear()
      for (const done of waiting) done(failure)
    }
  }

  /** The lowest tile that is waited for. */
  get #next(): number | undefined {
    const wanted = [...this.#users.values()].flatMap((tiles) => [...tiles.keys()])
    return wanted.length === 0 ? undefined : Math.min(...wanted)
  }

  /** Computes this tile and those after it, which the same prompt needs next. */
  async #run(first: number): Promise<void> {
    this.#running = true
    try {
      const tiles = await this.#tiles()
      for (let from: number | undefined = first; from !== undefined; from = this.#next)
        for (let tile = from; tile < tiles.length && !this.unused; tile++) {
          const rows =
            this.#find(tile) ?? (await this.#rows.encoded(this.#key, tile, tiles[tile]!, () => this.unused))
          if (rows === undefined) return
          if (!this.unused) this.#held.set(tile, rows)
          this.#answer(tile, rows)
        }
    } catch (cause) {
      this.#fail(cause)
    } finally {
      this.#running = false
      const next = this.#next
      if (next !== undefined && !this.#rows.closed) void this.#run(next)
    }
  }
}

export class PictureRows {
  readonly #options: PictureRowsOptions
  readonly #cache: LRUCache<string, TileRows>
  readonly #encodings = new Map<string, Encoding>()
  /** Resolves when the tower is free. */
  #turn: Promise<unknown> = Promise.resolve()
  /** The picture whose tile is computed. */
  #computing: string | undefined
  #lean = false
  #closed = false

  constructor(options: PictureRowsOptions) {
    this.#options = options
    this.#cache = new LRUCache({
      maxSize: Math.max(1, options.cacheBytes),
      sizeCalculation: ({ byteLength }) => byteLength,
    })
  }

  /** While on, no rows are kept for later requests. */
  lean(on: boolean): void {
    this.#lean = on
    if (on) this.#cache.clear()
  }

  /** Ends what is computed. Resolves when the tower is no longer in use. */
  async close(): Promise<void> {
    this.#closed = true
    if (this.#computing !== undefined) this.#options.tower.interrupt()
    await this.#turn
  }

  /** `key`: the same for everything that has the same rows. */
  source(key: string, picture: Picture, plan: PicturePlan): PictureSource {
    return { open: () => this.#open(key, picture, plan) }
  }

  #open(key: string, picture: Picture, plan: PicturePlan): OpenPicture {
    const encoding = this.#encodings.get(key) ?? new Encoding(key, this, () => plan.tiles(picture))
    this.#encodings.set(key, encoding)
    const user = encoding.join()
    return {
      tile: (tile, done) => encoding.want(user, tile, done),
      close: () => {
        encoding.leave(user)
        if (!encoding.unused) return
        if (this.#encodings.get(key) === encoding) this.#encodings.delete(key)
        if (this.#computing === key) this.#options.tower.interrupt()
      },
    }
  }

  get closed(): boolean {
    return this.#closed
  }

  cached(key: string, tile: number): TileRows | undefined {
    return this.#cache.get(`${key} ${tile}`)
  }

  /** The rows of a tile, after those that other pictures wait for; undefined if no request wants them any more. */
  encoded(
    key: string,
    tile: number,
    pixels: Awaited<ReturnType<PicturePlan["tiles"]>>[number],
    isUnwanted: () => boolean,
  ): Promise<TileRows | undefined> {
    const run = async () => {
      if (isUnwanted() || this.#closed) return undefined
      const { threads, tower } = this.#options
      const planes = await planesOf(pixels, tower.file)
      if (isUnwanted() || this.#closed) return undefined
      this.#computing = key
      try {
        const rows = await tower.encode(planes, threads())
        if (!this.#lean && rows.byteLength <= this.#cache.maxSize) this.#cache.set(`${key} ${tile}`, rows)
        return rows
      } catch (cause) {
        if (cause instanceof TowerInterrupted) return undefined
        throw cause
      } finally {
        this.#computing = undefined
      }
    }
    const result = this.#turn.then(run)
    this.#turn = result.catch(() => {})
    return result
  }
}
