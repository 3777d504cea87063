// The least server there is: uWebSockets.js, one answer of a given size to every GET, in a process of its own. What its
// callers wait for is what the machine makes them wait for.
import { App, us_socket_local_port } from "uWebSockets.js"

const body = "x".repeat(Number(process.argv[2]))

App()
  .get("/*", (res) => {
    res.end(body)
  })
  .listen("127.0.0.1", 0, (socket) => {
    if (socket === false) throw new Error("cannot listen")
    process.send?.(us_socket_local_port(socket))
  })
process.on("disconnect", () => process.exit(0))
