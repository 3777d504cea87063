// Entry point of the thread that compresses Scalar's script: one Asset out, to ScalarScript.
//
// Effect ships the script in a module that its `exports` do not contain; its public function makes a page with the
// script (HttpApiScalar.layer). So the page of an empty API is rendered, and its first script element cut out by HTML's
// own rule, which no script in a page can circumvent: it ends at the first `</script`. No file name within effect is
// relied upon.
import { parentPort } from "node:worker_threads"
import { Effect, Layer } from "effect"
import { HttpRouter, HttpServer } from "effect/http"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiScalar from "effect/http-api/HttpApiScalar"
import { packed } from "../http/Asset.ts"

const port = parentPort
if (port === null) throw new Error("scalarScriptMain runs as a worker thread")

const { handler } = HttpRouter.toWebHandler(
  HttpApiScalar.layer(HttpApi.make("empty")).pipe(Layer.provide(HttpServer.layerServices)),
  { disableLogger: true },
)
const prepare = async (): Promise<void> => {
  const page = await (await handler(new Request("http://localhost/docs"))).text()
  const [, script] = /<script>(.*?)<\/script/s.exec(page) ?? []
  if (script?.includes("createApiReference") !== true)
    throw new Error("effect's API reference no longer begins with Scalar's script")

  const asset = await Effect.runPromise(packed(script))
  port.postMessage(asset, [asset.identity.buffer as ArrayBuffer, asset.gzip.buffer as ArrayBuffer])
}
void prepare()
