/**
 * An SSP of your own that runs jobs: `svc.yml` as data, backends over the runtime's `fetch`, nothing but the web's
 * types around it.
 *
 * The second argument of `Memory.ports` is the HTTP client that calls backends, the third the configuration file; a
 * settings layer merged behind is too late.
 */
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import * as HttpApiBuilder from "@effect/platform/HttpApiBuilder"
import * as HttpServer from "@effect/platform/HttpServer"
import { Layer } from "effect"
import * as Memory from "surreal-live-sidecar/ssp/Memory"

export const nodeWithJobs = (secret: string, backend: string) => {
  const file = { job_tables: { mail_job: { name: "mail", base_url: backend, timeout_ms: 5000 } } }
  const ssp = Memory.layer({ SVC_AUTH_SECRET: secret }, FetchHttpClient.layer, file)
  return HttpApiBuilder.toWebHandler(Layer.merge(ssp, HttpServer.layerContext))
}
