// POST /v1/realtime/calls/{id}/hangup: ends a call of the caller's organization.
import { Effect } from "effect"
import { type HttpServerRequest, HttpServerResponse } from "effect/http"
import { idOfHangUp, pathOf } from "#http/NotFound.ts"
import { Caller } from "#services/Caller.ts"
import { withoutBody } from "../http/JsonBody.ts"
import { OpenCalls } from "./OpenCalls.ts"

export const hangUp = (request: HttpServerRequest.HttpServerRequest) =>
  withoutBody(request)(
    Effect.gen(function* () {
      const call = yield* (yield* OpenCalls).find(idOfHangUp(pathOf(request.url)) ?? "", yield* Caller)
      call.hangUp()
      return HttpServerResponse.empty({ status: 200 })
    }),
  )
