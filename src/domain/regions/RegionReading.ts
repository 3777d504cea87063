/** The result of probing one region: its newest health, and the round trip from this process to its edge. */
export interface RegionReading {
  readonly region: string
  readonly healthy: boolean
  /** Milliseconds. Undefined if no recent probe was answered. */
  readonly roundTripMs: number | undefined
}
