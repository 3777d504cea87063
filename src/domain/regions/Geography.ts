// Points on the Earth and the distance between them. Pure.

/** Degrees; north and east are positive. */
export interface Point {
  readonly latitude: number
  readonly longitude: number
}

export const isPoint = ({ latitude, longitude }: Point): boolean =>
  Math.abs(latitude) <= 90 && Math.abs(longitude) <= 180

/** Mean radius (IUGG). The Earth's flattening changes distances by 0.5 %, far less than network paths do. */
const earthRadiusKm = 6371.0088

const radians = (degrees: number): number => (degrees * Math.PI) / 180

/** Great-circle distance by the haversine formula. */
export const kilometresBetween = (a: Point, b: Point): number => {
  const latitude = Math.sin(radians(b.latitude - a.latitude) / 2)
  const longitude = Math.sin(radians(b.longitude - a.longitude) / 2)
  const h =
    latitude * latitude +
    Math.cos(radians(a.latitude)) * Math.cos(radians(b.latitude)) * longitude * longitude
  // Rounding may lift h over 1 at antipodes, where asin is NaN.
  return 2 * earthRadiusKm * Math.asin(Math.min(1, Math.sqrt(h)))
}
