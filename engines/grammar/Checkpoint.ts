// Where long work of this folder lets its caller in between.

/**
 * Called again and again with the units of work that were done since the last call; a unit takes 0.2 to 1 µs (measured). It may wait,
 * and may throw to end the work.
 */
export type Checkpoint = (units: number) => void

export const noCheckpoint: Checkpoint = () => {}
