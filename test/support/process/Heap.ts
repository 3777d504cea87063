// The JavaScript memory of this process that is in use.
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"

/** Bytes of the heap and of buffers beside it that a collection leaves. */
export const heapAfterCollection = (): number => {
  setFlagsFromString("--expose-gc")
  const collect = runInNewContext("gc") as () => void
  collect()
  collect()
  const { external, heapUsed } = process.memoryUsage()
  return heapUsed + external
}
