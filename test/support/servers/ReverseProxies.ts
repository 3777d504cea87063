// Reverse proxies in front of a test node, with the configurations printed in docs/proxies.md: only ports and listen
// addresses are replaced. Each runs in the foreground, as the current user, in its own temporary folder.
import { type ChildProcess, execFileSync, spawn } from "node:child_process"
import { readFileSync, writeFileSync } from "node:fs"
import net from "node:net"
import { join } from "node:path"
import { temporaryDir } from "../process/TemporaryDir.ts"
import { freePort } from "./FreePort.ts"

export type ProxyName = "nginx" | "haproxy" | "caddy"

const docs = readFileSync(new URL("../../../docs/proxies.md", import.meta.url), "utf8")

/** The block of the page in this language; there must be exactly one. */
const blockOf = (language: string): string => {
  const blocks = [...docs.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].filter(([, name]) => name === language)
  if (blocks.length !== 1) throw new Error(`docs/proxies.md has ${blocks.length} blocks of ${language}`)
  return blocks[0]![2]!
}

/** The printed configuration of each proxy. */
export const printed: Readonly<Record<ProxyName, string>> = {
  nginx: blockOf("nginx"),
  haproxy: blockOf("haproxy"),
  caddy: blockOf("caddyfile"),
}

/** nginx as it is without settings of its own: it asks in HTTP/1.0, which Node's own server answers. */
export const printedDefaults = blockOf("conf")

/** Replaces text that must occur exactly once. */
const replaceOnce = (text: string, from: string, to: string): string => {
  const parts = text.split(from)
  if (parts.length !== 2) throw new Error(`${JSON.stringify(from)} stands ${parts.length - 1} times`)
  return parts.join(to)
}

interface Ports {
  readonly listen: number
  readonly upstream: number
}

interface Launch {
  readonly args: ReadonlyArray<string>
  readonly env?: Readonly<Record<string, string>>
}

/** Writes the files of a proxy into a folder and returns the command that starts it. */
type Prepare = (folder: string, config: string, ports: Ports) => Launch

/** nginx's main file, which includes `conf.d/*.conf`, with every path inside the folder. */
const nginxMain = (
  folder: string,
): string => `${process.getuid?.() === 0 ? "user root;\n" : ""}pid ${folder}/pid;
error_log ${folder}/error.log;
events { worker_connections 256; }
http {
  access_log off;
  client_body_temp_path ${folder}/body;
  proxy_temp_path ${folder}/proxy;
  fastcgi_temp_path ${folder}/fastcgi;
  uwsgi_temp_path ${folder}/uwsgi;
  scgi_temp_path ${folder}/scgi;
  include ${folder}/edgewise.conf;
}
`

const prepare: Readonly<Record<ProxyName, Prepare>> = {
  nginx: (folder, config, { listen }) => {
    writeFileSync(
      join(folder, "edgewise.conf"),
      replaceOnce(config, "    listen 80;", `    listen 127.0.0.1:${listen};`),
    )
    writeFileSync(join(folder, "nginx.conf"), nginxMain(folder))
    const log = join(folder, "error.log")
    return { args: ["-p", folder, "-e", log, "-c", join(folder, "nginx.conf"), "-g", "daemon off;"] }
  },
  haproxy: (folder, config, { listen }) => {
    const file = join(folder, "haproxy.cfg")
    writeFileSync(file, replaceOnce(config, "    bind :80\n", `    bind 127.0.0.1:${listen}\n`))
    return { args: ["-db", "-f", file] }
  },
  caddy: (folder, config, { listen }) => {
    const env = { HOME: folder, XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder }
    const file = join(folder, "Caddyfile")
    // With `http://` and a bind address it serves no TLS and only this interface.
    writeFileSync(file, replaceOnce(config, "\n:80 {\n", `\nhttp://:${listen} {\n\tbind 127.0.0.1\n`))
    const adapted = execFileSync("caddy", ["adapt", "--config", file, "--adapter", "caddyfile"], {
      env: { ...process.env, ...env },
      stdio: ["ignore", "pipe", "ignore"],
    })
    // Its administration interface listens on one fixed port, which two processes cannot share.
    const admin = { disabled: true, config: { persist: false } }
    const json = join(folder, "caddy.json")
    writeFileSync(json, JSON.stringify({ ...(JSON.parse(String(adapted)) as object), admin }))
    return { args: ["run", "--config", json], env }
  },
}

const accepts = (port: number): Promise<boolean> =>
  new Promise((resolve) => {
    const socket = net.connect({ port, host: "127.0.0.1" })
    socket.once("connect", () => resolve(true)).once("error", () => resolve(false))
    socket.once("connect", () => socket.destroy())
  })

const stopped = (child: ChildProcess): Promise<void> =>
  new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null) return resolve()
    const kill = setTimeout(() => child.kill("SIGKILL"), 3_000)
    child.once("exit", () => {
      clearTimeout(kill)
      resolve()
    })
    child.kill("SIGTERM")
  })

const startPatienceMs = 60_000

export interface ReverseProxy {
  readonly port: number
  readonly base: string
  readonly stop: () => Promise<void>
}

/** Starts a proxy in front of a node's port, by default with its printed configuration. */
export const startProxy = async (
  proxy: ProxyName,
  upstream: number,
  config = printed[proxy],
): Promise<ReverseProxy> => {
  const dir = temporaryDir()
  const listen = await freePort()
  const onNode = replaceOnce(config, "127.0.0.1:8080", `127.0.0.1:${upstream}`)
  const { args, env } = prepare[proxy](dir.path, onNode, { listen, upstream })
  const child = spawn(proxy, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] })
  let output = ""
  const collect = (text: Buffer): void => {
    output = (output + String(text)).slice(-4_000)
  }
  child.stdout.on("data", collect)
  child.stderr.on("data", collect)
  const stop = () => stopped(child).finally(dir.remove)
  const until = performance.now() + startPatienceMs
  while (!(await accepts(listen))) {
    if (child.exitCode !== null || performance.now() > until) {
      await stop()
      throw new Error(`${proxy} did not start: ${output}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 20))
  }
  return { port: listen, base: `http://127.0.0.1:${listen}`, stop }
}
