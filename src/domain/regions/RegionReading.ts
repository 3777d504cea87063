/** What the probes of one region found: the newest answer, and the round trip from this process to the region's edge. */
export interface RegionReading {
  readonly region: string
  readonly healthy: boolean
  /** Milliseconds; undefined where no recent probe was answered. */
  readonly roundTripMs: number | undefined
}
