#!/usr/bin/env node
// The command `edgewise`, of a checkout (npm's scripts) and of an installed package. npm and npx start it with the machine's
// own Node, so it is plain JavaScript for Node 20 and later. It runs the program on the Node 22 that npm installed beside
// it, else on this Node if that is recent enough: in this process if the Node is the right one and has the wanted options, else
// as a child process (child.js), as also a node that is started again when it crashes.
// A service manager should start the program without a process in between (docs/install.md).
import { spawn } from "node:child_process"
import { existsSync, realpathSync } from "node:fs"
import { createRequire } from "node:module"
import { dirname, join } from "node:path"
import { fileURLToPath, pathToFileURL } from "node:url"
import { restarts, runChild } from "./child.js"

const root = fileURLToPath(new URL("..", import.meta.url))

/** TypeScript in a checkout; a package has the same files as JavaScript (pack/prepack.ts). */
const main = ["src/main.ts", "app/src/main.js"].map((path) => join(root, path)).find(existsSync)

/** The first version that has everything the program uses, and that runs TypeScript without a flag. */
const oldest = [22, 18]

const isRecent = () => {
  const [major = 0, minor = 0] = process.versions.node.split(".").map(Number)
  return major > oldest[0] || (major === oldest[0] && minor >= oldest[1])
}

/** The Node that npm installed for this system and processor. Undefined if there is none. */
const installedNode = () => {
  try {
    const name = `node-${process.platform}-${process.arch}/package.json`
    const path = join(dirname(createRequire(import.meta.url).resolve(name)), "bin", "node")
    return existsSync(path) ? path : undefined
  } catch {
    return undefined
  }
}

const fail = (message) => {
  console.error(`edgewise: ${message}`)
  process.exit(1)
}

const options = ["--disable-warning=ExperimentalWarning"]
const signals = ["SIGTERM", "SIGHUP", "SIGUSR2", "SIGINT"]

const args = process.argv.slice(2)

const isThis = (node) => realpathSync(node) === realpathSync(process.execPath)

/** Starts the program with a Node as a child process. */
const spawnMain = (node) => {
  // Options of this process, such as the size of the heap, are the program's on the same Node.
  const given = isThis(node) ? process.execArgv.filter((option) => !options.includes(option)) : []
  const onSignal = runChild(
    args,
    (more) => spawn(node, [...options, ...given, main, ...args], more),
    (error) => {
      // The installed Node needs glibc; on another C library its loader is missing.
      if (node !== process.execPath && isRecent()) run(process.execPath)
      else fail(`${node} does not start (${error.code ?? error.message}): install Node 22.18 or later`)
    },
  )
  for (const signal of signals)
    // A terminal sends Ctrl-C to both processes. The child would take a second one as a command to end at once.
    process.on(signal, () => onSignal(signal, signal !== "SIGINT" || !process.stdin.isTTY))
}

const run = (node) => {
  const hasOptions = options.every((option) => process.execArgv.includes(option))
  if (isThis(node) && hasOptions && !restarts(args, process.env)) import(pathToFileURL(main).href)
  else spawnMain(node)
}

const node = installedNode()
if (main === undefined) fail("this package has no program: it was packed without its scripts; run `npm pack` again")
else if (node !== undefined) run(node)
else if (isRecent()) run(process.execPath)
else
  fail(
    `needs Node 22.18 or later, and this is ${process.versions.node}: install one, or install this package with its optional dependencies`,
  )
