// A tower alone, in a process of its own: the floor of a picture's first token. Commands: open the files, and compute a picture.
import { dirname } from "node:path"
import { makeInterrupt } from "../../engines/llama/native/Interrupt.ts"
import { openLibllama } from "../../engines/llama/native/Libllama.ts"
import { openLibrary } from "../../engines/llama/native/Library.ts"
import { isNativeObject, loadedObjects } from "../../engines/llama/native/NativeObjects.ts"
import { openTower, type Tower } from "../../engines/llama/tower/Tower.ts"
import { readTowerFile } from "../../engines/llama/tower/TowerFile.ts"
import { serveCommands } from "../support/CommandChannel.ts"

let tower: Tower | undefined

const commands = {
  open: async (path: string): Promise<void> => {
    await openLibrary({ gpu: "off", threads: 1, logger: () => {} })
    const objects = loadedObjects()
    const library = openLibllama(dirname(objects.find((name) => isNativeObject(name, "llama")) ?? ""))
    const device = { offloaded: false, objects, makeInterrupt: () => makeInterrupt(library) }
    tower = await openTower(path, await readTowerFile(path), device)
  },

  /** Milliseconds of one tile on one thread, as the clock counts them and of processor time. */
  encode: async (): Promise<{ readonly ms: number; readonly cpuMs: number }> => {
    if (tower === undefined) throw new Error("no tower is open")
    const { size } = tower.file
    const values = Float32Array.from({ length: 3 * size * size }, (_, at) => Math.sin(at))
    const before = process.cpuUsage()
    const beganMs = performance.now()
    await tower.encode({ width: size, height: size, values }, 1)
    const ms = performance.now() - beganMs
    const { system, user } = process.cpuUsage(before)
    return { ms, cpuMs: (system + user) / 1_000 }
  },
}

export type TowerCommands = typeof commands

serveCommands(commands)
