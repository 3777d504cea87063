// Why a schema is refused. Thrown inside this folder only; `schemaRules` returns it as data.

import type { Checkpoint } from "../../Checkpoint.ts"

export interface Problem {
  /** Where in the schema, like `properties.age.minimum`. Empty for the root. */
  readonly path: string
  /** A sentence for callers: what is wrong, and the limit if one was exceeded. */
  readonly detail: string
}

export class SchemaProblem extends Error {
  readonly problem: Problem

  constructor(path: string, detail: string) {
    super(`${path}: ${detail}`)
    this.problem = { path, detail }
  }
}

export const at = (path: string, ...steps: ReadonlyArray<string | number>): string =>
  [...(path === "" ? [] : [path]), ...steps].join(".")

/** Bounds the work on one schema by counts, so the result does not depend on the speed of the machine. */
export class Work {
  /** Of work that is not counted as units, too. */
  readonly checkpoint: Checkpoint
  #left: number

  constructor(units: number, checkpoint: Checkpoint) {
    this.#left = units
    this.checkpoint = checkpoint
  }

  /** One unit is about the work for one expression or one edge of an automaton. */
  spend(units: number, path: string): void {
    this.checkpoint(units)
    this.#left -= units
    if (this.#left < 0) throw new SchemaProblem(path, "the schema is too complex: its rules exceed the limit")
  }
}
