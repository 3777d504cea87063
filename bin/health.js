// Exit status 0 if the node with these settings answers, else 1 with the reason: for health checks of containers and
// service managers. Settings are read from the environment only, not from flags of `serve`. Plain JavaScript without
// imports of the program, because it is started every 15 s: it takes 57 ms of a processor, a command of `edgewise` 1.1 s
// (measured).
import { request as overHttp } from "node:http"
import { request as overTls } from "node:https"

const {
  EDGEWISE_AUTH_PORT: authPort,
  EDGEWISE_HOST: host = "127.0.0.1",
  EDGEWISE_PORT: port,
  EDGEWISE_ROLES: roles = "edge",
  EDGEWISE_ROUTER_PORT: routerPort,
  EDGEWISE_TLS: tls,
  EDGEWISE_TLS_CERT: certificate,
} = process.env

/** Milliseconds; shorter than the time limit of the image's health check. */
const mostMs = 4_000

const ports = { edge: port || 8080, auth: authPort || 8081, router: routerPort || 8082 }
const role = Object.keys(ports).find((one) => roles.includes(one)) ?? "edge"
const isTls = tls === "self-signed" || (tls !== "off" && Boolean(certificate))

const fail = (reason) => {
  console.error(`edgewise: not healthy: ${reason}`)
  process.exit(1)
}

const address = {
  // A node that listens on every address is asked on the loopback address.
  host: { "": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "::1" }[host] ?? host,
  port: ports[role],
  path: "/health",
  // The certificate names the node's public address, not this one, and nothing secret is sent.
  rejectUnauthorized: false,
}
const sent = (isTls ? overTls : overHttp)(address, ({ statusCode }) => {
  if (statusCode === 200) process.exit(0)
  fail(`${role} answers ${statusCode}`)
})
sent.once("error", ({ message }) => fail(message))
sent.end()
setTimeout(() => fail(`no answer within ${mostMs / 1000} s`), mostMs)
