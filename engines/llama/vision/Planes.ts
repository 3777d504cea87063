// Pixels as the tower reads them: normalised floats, all of red, then of green, then of blue.
import type { Planes } from "../tower/Tower.ts"
import type { TowerFile } from "../tower/TowerFile.ts"
import { breaths } from "./Breaths.ts"
import type { Pixels } from "./Resample.ts"

export const planesOf = async (
  { height, rgb, width }: Pixels,
  { deviation, mean }: Pick<TowerFile, "deviation" | "mean">,
): Promise<Planes> => {
  const breath = breaths()
  const count = width * height
  const values = new Float32Array(3 * count)
  for (let channel = 0; channel < 3; channel++) {
    const f = Math.fround
    // Every step is rounded to 32 bits, as in llama.cpp.
    const valueOf = Float32Array.from({ length: 256 }, (_, byte) =>
      f(f(f(byte / 255) - f(mean[channel]!)) / f(deviation[channel]!)),
    )
    for (let line = 0; line < height; line++) {
      const from = line * width
      for (let at = from; at < from + width; at++)
        values[channel * count + at] = valueOf[rgb[3 * at + channel]!]!
      await breath()
    }
  }
  return { width, height, values }
}
