// The hostile suite: mutated inputs, and the attacks of docs/security.md.
import { Effect, type Scope } from "effect"
import { ChildFailed } from "../support/Child.ts"
import type { Section } from "../support/Findings.ts"
import { type AttacksPlan, attacks } from "./Attacks.ts"
import { type FloodsPlan, floods } from "./Floods.ts"
import { type FuzzPlan, fuzz, replay } from "./Fuzz.ts"

type Size = Omit<FuzzPlan, "seed">

/** Under five minutes. */
export const full: Size = {
  inputs: 200_000,
  perSecond: 800,
  seconds: 260,
  quietSeconds: 10,
  warmUpSeconds: 4,
}
/** Under a minute. */
const quick: Size = { inputs: 20_000, perSecond: 800, seconds: 40, quietSeconds: 4, warmUpSeconds: 4 }
/** For `npm test`: what counts is that all inputs are sent, however long a busy machine takes. */
export const small: Size = {
  inputs: 1_500,
  perSecond: 500,
  seconds: 90,
  quietSeconds: 0.5,
  warmUpSeconds: 1,
}

/** Five minutes. */
const fullAttacks: AttacksPlan = { rounds: 2, seconds: 6 }
/** A minute and a half. */
const quickAttacks: AttacksPlan = { rounds: 1, seconds: 3 }

/** Seeds from 0 to this, less one, when none is given. */
const seeds = 1_000_000

export interface HostileOptions {
  readonly quick: boolean
  readonly seed: number | undefined
  /** Index of the one input to send. */
  readonly only: number | undefined
  readonly attacks: boolean
  /** Only attacks whose name begins with this. */
  readonly attack: string | undefined
  /** All attacks on conversations at once, with a small heap. */
  readonly floods: FloodsPlan | undefined
  readonly profileDir: string | undefined
}

export const hostileSuite = ({
  attack,
  attacks: isAttacks,
  floods: floodsPlan,
  only,
  profileDir,
  quick: isQuick,
  seed,
}: HostileOptions): Effect.Effect<ReadonlyArray<Section>, ChildFailed, Scope.Scope> => {
  if (floodsPlan !== undefined) return floods(floodsPlan)
  if (isAttacks || attack !== undefined) {
    return attacks({ ...(isQuick ? quickAttacks : fullAttacks), named: attack }, profileDir)
  }
  if (only === undefined) {
    return fuzz({ ...(isQuick ? quick : full), seed: seed ?? Math.floor(Math.random() * seeds) })
  }
  if (seed === undefined) {
    return Effect.fail(
      new ChildFailed({ child: "bench hostile", detail: "--only wants the --seed of the run" }),
    )
  }
  return replay(seed, only)
}
