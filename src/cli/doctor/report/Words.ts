// Words for tables and sentences. Numbers are written as in all reports (bench/harness/report/Format.ts). Pure.

const mebibyte = 1024 * 1024

export const bytesShown = (bytes: number): string =>
  bytes >= 1024 * mebibyte
    ? `${(bytes / 1024 / mebibyte).toFixed(1)} GiB`
    : `${Math.round(bytes / mebibyte)} MiB`

export const counted = (count: number, one: string, many = `${one}s`): string =>
  `${count} ${count === 1 ? one : many}`
