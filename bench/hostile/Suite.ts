// The hostile suite: mutated inputs, and the attacks of docs/security.md.
import { Effect } from "effect"
import { ChildFailed } from "../support/Child.ts"
import { type Suite, suite } from "../support/Suite.ts"
import { type AttacksPlan, attacks } from "./Attacks.ts"
import { type FloodsPlan, floods } from "./Floods.ts"
import { type FuzzPlan, fuzz, replay } from "./Fuzz.ts"
import { type HoldsPlan, holds } from "./Holds.ts"

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

/** Nineteen minutes. */
const fullAttacks: AttacksPlan = { rounds: 3, seconds: 6 }
/** A minute and a half. */
const quickAttacks: AttacksPlan = { rounds: 1, seconds: 3 }

/** Seeds from 0 to this, less one, when none is given. */
const seeds = 1_000_000

export interface HostileOptions {
  readonly seed: number | undefined
  /** Index of the one input to send. */
  readonly only: number | undefined
  /** Only attacks whose name begins with this, or with one of these, separated by commas. */
  readonly attack: string | undefined
  readonly floods: FloodsPlan
}

interface Plan {
  readonly inputs: Size
  readonly attacks: AttacksPlan
  readonly holds: HoldsPlan
}

/** The mutated inputs, or one of them. */
const inputs = (size: Size, { only, seed }: HostileOptions) => {
  if (only === undefined) return fuzz({ ...size, seed: seed ?? Math.floor(Math.random() * seeds) })
  if (seed !== undefined) return replay(seed, only)
  return Effect.fail(
    new ChildFailed({ child: "bench hostile", detail: "--only wants the --seed of the run" }),
  )
}

export const hostileSuite = (options: HostileOptions): Suite =>
  suite<string | undefined, Plan>({
    name: "hostile",
    plans: {
      full: { inputs: full, attacks: fullAttacks, holds: { times: 5 } },
      quick: { inputs: quick, attacks: quickAttacks, holds: { times: 2 } },
    },
    start: ({ profileDir }) => Effect.succeed(profileDir),
    sections: {
      inputs: (_, plan) => inputs(plan.inputs, options),
      attacks: (profileDir, plan) => attacks({ ...plan.attacks, named: options.attack }, profileDir),
      floods: () => floods(options.floods),
      holds: (_, plan) => holds(plan.holds),
    },
    onlyNamed: ["attacks", "floods", "holds"],
  })
