// Exact decimal notation of the numbers in a schema.

/** A decimal number that is not negative: digits before and after the point, without superfluous zeros. */
export interface Magnitude {
  /** At least one digit. */
  readonly whole: string
  readonly fraction: string
}

export const isZero = (magnitude: Magnitude): boolean => magnitude.whole === "0" && magnitude.fraction === ""

/**
 * The magnitude of a finite number as JavaScript prints it. Integers of more than 15 digits are exact: the printed form
 * rounds them.
 */
export const magnitudeOf = (value: number): Magnitude => {
  const size = Math.abs(value)
  if (Number.isInteger(size) && size >= 1e15) return { whole: BigInt(size).toString(), fraction: "" }
  const [mantissa, exponent] = String(size).split("e")
  const [whole, fraction = ""] = mantissa!.split(".")
  const shift = Number(exponent ?? 0)
  const all = whole! + fraction
  const point = whole!.length + shift
  const before = point > 0 ? all.slice(0, point).padEnd(point, "0") : "0"
  const after = point > 0 ? all.slice(point) : "0".repeat(-point) + all
  return { whole: before.replace(/^0+(?=\d)/, ""), fraction: after.replace(/0+$/, "") }
}

/** `units` / 10 ** `scale`, as text without superfluous zeros. */
export const printScaled = (units: bigint, scale: number): string => {
  const size = (units < 0n ? -units : units).toString().padStart(scale + 1, "0")
  const whole = size.slice(0, size.length - scale)
  const fraction = size.slice(size.length - scale).replace(/0+$/, "")
  return `${units < 0n ? "-" : ""}${whole}${fraction === "" ? "" : `.${fraction}`}`
}

const buffer = new DataView(new ArrayBuffer(8))

/** The next larger double of a positive one. */
export const nextUp = (value: number): number => {
  buffer.setFloat64(0, value)
  buffer.setBigUint64(0, buffer.getBigUint64(0) + 1n)
  return buffer.getFloat64(0)
}

/** The next smaller double of a positive one. */
export const nextDown = (value: number): number => {
  buffer.setFloat64(0, value)
  buffer.setBigUint64(0, buffer.getBigUint64(0) - 1n)
  return buffer.getFloat64(0)
}
