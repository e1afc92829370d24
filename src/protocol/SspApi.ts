/**
 * The SSP's HTTP contract: every endpoint with every status, and the checks before its handler runs.
 *
 * Declared once; handlers, client and the OpenAPI document derive from it. Checks run in the order of D6: route,
 * bearer, readiness, size and shape. Middlewares wrap, so each endpoint lists them from the inside out.
 */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiEndpoint from "@effect/platform/HttpApiEndpoint"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as HttpApiMiddleware from "@effect/platform/HttpApiMiddleware"
import * as HttpApiSchema from "@effect/platform/HttpApiSchema"
import * as HttpApiSecurity from "@effect/platform/HttpApiSecurity"
import * as OpenApi from "@effect/platform/OpenApi"
import { Schema } from "effect"
import { audits, Caller, open, requiresScope } from "./access.ts"
import * as BrowserEndpoints from "./browserEndpoints.ts"
import * as Errors from "./errors.ts"
import * as Examples from "./examples.ts"
import * as Integrity from "./integrity.ts"
import * as JobEndpoints from "./jobEndpoints.ts"
import * as Jobs from "./jobs.ts"
import { JsonBody } from "./jsonBody.ts"
import { doc, withExamples, withoutDecodeError } from "./openApi.ts"
import * as Overview from "./overview.ts"
import * as Progress from "./progress.ts"
import * as StreamEvents from "./streamEvents.ts"
import * as ViewEndpoints from "./viewEndpoints.ts"
import * as Wire from "./wire.ts"

/**
 * `Authorization: Bearer <SVC_AUTH_SECRET>`, or one of SVC_AUTH_SECRETS with the endpoint's scope; compared in constant
 * time (D15).
 */
export class Bearer extends HttpApiMiddleware.Tag<Bearer>()("SspApi/Bearer", {
  failure: Schema.Union(Errors.Unauthorized, Errors.ScopeRequired),
  provides: Caller,
  security: {
    bearer: HttpApiSecurity.bearer.pipe(
      HttpApiSecurity.annotate(
        OpenApi.Description,
        "The value of SVC_AUTH_SECRET, or a secret of SVC_AUTH_SECRETS with the scope that the operation names"
      )
    )
  }
}) {}

/** 503 until the SSP is ready. */
export class Ready extends HttpApiMiddleware.Tag<Ready>()("SspApi/Ready", { failure: Errors.SspNotReady }) {}

const ingest = HttpApiEndpoint.post("ingest")`/ingest`
  .setPayload(Wire.Ingest)
  .addSuccess(Wire.Ingested)
  .addError(Errors.InvalidOperation)
  .addError(Errors.SequenceGap)
  .addError(Errors.StaleEpoch)
  .addError(Errors.Overloaded)
  .addError(Errors.StoreFailed)
  .middleware(JsonBody)
  .middleware(Ready)
  .middleware(Bearer)
  .annotateContext(requiresScope("ingest"))
  .annotateContext(
    doc(
      "Apply a record change",
      "Answers when the change is durable and every view is updated. An array is applied in order as one step (extension)."
    )
  )

const register = HttpApiEndpoint.post("register")`/view/register`
  .setPayload(Wire.ViewRegistration)
  .addSuccess(Schema.Union(Wire.ViewResult, Wire.ViewPlaced))
  .addError(Errors.InvalidQuery)
  .addError(Errors.ViewQuarantined)
  .addError(Errors.Overloaded)
  .addError(Errors.TablesJoining)
  .addError(Errors.StoreFailed)
  .middleware(JsonBody)
  .middleware(Ready)
  .middleware(Bearer)
  .annotateContext(audits("view.register", "register"))
  .annotateContext(
    doc(
      "Register a view",
      "Answers the initial result; with `assignment`, which the scheduler sends, only that it is there. Registering an id again refreshes or replaces it (D9)."
    )
  )

const unregister = HttpApiEndpoint.post("unregister")`/view/unregister`
  .setPayload(Wire.ViewUnregistration)
  .addSuccess(Wire.Ok)
  .addError(Errors.StoreFailed)
  .middleware(JsonBody)
  .middleware(Bearer)
  .annotateContext(audits("view.unregister", "register"))
  .annotateContext(doc("Unregister a view", "200 for an unknown id too (D16)."))

const view = ViewEndpoints.read
  .addError(Errors.ViewNotFound)
  .addError(Errors.ViewQuarantined)
  .middleware(Ready)
  .middleware(Bearer)
  .annotateContext(
    doc(
      "Read a view (extension)",
      "The current result (D11), in the view's own format unless `format` asks for another. A result without `errors` has an `ETag`; 304, without a body, where `If-None-Match` names it. From 1 KiB on it is gzip for a client whose `Accept-Encoding` names that, with a weak tag."
    )
  )

const stream = ViewEndpoints.stream
  .addError(Errors.ViewNotFound)
  .addError(Errors.ViewQuarantined)
  .addError(Errors.Overloaded)
  .middleware(Ready)
  .middleware(Bearer)
  .annotateContext(doc("Follow a view (extension)", `${StreamEvents.streamDoc}${StreamEvents.lastEventId}`))

const openStream = BrowserEndpoints.openStream.middleware(Ready).middleware(Bearer)

const changeStream = BrowserEndpoints.changeStream.middleware(Ready).middleware(Bearer)

const token = BrowserEndpoints.token.middleware(Bearer)

const revoke = BrowserEndpoints.revoke.middleware(Bearer)

const touch = BrowserEndpoints.touch.addError(Errors.StoreFailed).middleware(Ready).middleware(Bearer)

const free = HttpApiEndpoint.post("free")`/view/free`
  .setPayload(Wire.ViewFreeing)
  .addSuccess(Wire.Ok)
  .addError(Errors.ViewNotFound)
  .middleware(JsonBody)
  .middleware(Bearer)
  .annotateContext(audits("view.free", "admin"))
  .annotateContext(
    doc(
      "Free a view that is set aside (extension)",
      "Lets its query be evaluated again (D48), under every id that has it; 404 where nothing of this id is set aside."
    )
  )

const views = HttpApiEndpoint.get("views")`/views`
  .setUrlParams(Schema.Struct(Overview.ViewListing))
  .addSuccess(Overview.ListedViews)
  .middleware(Bearer)
  .annotateContext(requiresScope("read"))
  .annotateContext(doc("List the views (extension)", "In key order, page by page, with rows, costs and followers."))

const reset = HttpApiEndpoint.post("reset")`/reset`
  .addSuccess(Wire.Ok)
  .addError(Errors.StoreFailed)
  .middleware(Bearer)
  .annotateContext(audits("reset", "admin"))
  .annotateContext(doc("Clear all views and data", "Destructive (D16)."))

const log = HttpApiEndpoint.post("log")`/log`
  .setPayload(Wire.LogEntry)
  .addSuccess(Wire.Ok)
  .middleware(JsonBody)
  .middleware(Bearer)
  .annotateContext(requiresScope("ingest"))
  .annotateContext(doc("Write to the service's log", "Level `info` when absent."))

const debugView = ViewEndpoints.debug
  .addError(Errors.ViewNotFound)
  .middleware(Bearer)
  .annotateContext(doc("Look inside a view", "Cache, dependencies and plan (D13)."))

const debugDeps = HttpApiEndpoint.get("debugDeps")`/debug/deps`
  .addSuccess(Wire.DebugDeps)
  .middleware(Bearer)
  .annotateContext(requiresScope("read"))
  .annotateContext(doc("Which views read which tables", "D13."))

const health = HttpApiEndpoint.get("health")`/health`
  .addSuccess(Wire.Healthy)
  .addSuccess(Wire.Unhealthy, { status: 503 })
  .annotateContext(open)
  .annotateContext(doc("Readiness", "503 while bootstrapping or failed."))

const version = HttpApiEndpoint.get("version")`/version`
  .addSuccess(Wire.Version)
  .annotateContext(open)
  .annotateContext(doc("Version and mode", "Answers as long as the process lives."))

const info = HttpApiEndpoint.get("info")`/info`
  .addSuccess(Wire.Info)
  .annotateContext(open)
  .annotateContext(doc("Entities", "This SSP."))

const overview = HttpApiEndpoint.get("overview")`/overview`
  .addSuccess(Overview.SspOverview)
  .middleware(Bearer)
  .annotateContext(requiresScope("read"))
  .annotateContext(
    doc(
      "How it is doing, in one answer (extension)",
      "Counts from memory, cheap enough to ask every second; the dashboard at `/` does."
    )
  )

const metrics = HttpApiEndpoint.get("metrics")`/metrics`
  .addSuccess(HttpApiSchema.Text({ contentType: "text/plain" }).annotations({ examples: [Examples.prometheus] }))
  .middleware(Bearer)
  .annotateContext(requiresScope("metrics"))
  .annotateContext(
    doc("Metrics (extension)", "The Prometheus text format (D34); `/overview` is the same moment as JSON.")
  )

const progress = HttpApiEndpoint.get("progress")`/progress`
  .addSuccess(Progress.SspProgress)
  .middleware(Bearer)
  .annotateContext(requiresScope("read"))
  .annotateContext(doc("How far long work is (extension)", "Loading, bootstrap and compares that go on now (D34)."))

const nodes = HttpApiEndpoint.get("nodes")`/integrity`
  .setUrlParams(Schema.Struct(Integrity.NodeQuery))
  .addSuccess(Schema.Union(Integrity.Tables, Integrity.Node))
  .addError(Errors.Overloaded)
  .middleware(Ready)
  .middleware(Bearer)
  .annotateContext(requiresScope("read"))
  .annotateContext(
    doc(
      "Hashes of the records (extension)",
      "Roots of all tables, or a node of one table's Merkle tree with what is below it (D41)."
    )
  )

const compare = HttpApiEndpoint.get("compare")`/integrity/compare`
  .setUrlParams(Schema.Struct({ table: Schema.optional(Schema.String) }))
  .addSuccess(Integrity.Comparison)
  .addError(Errors.StoreFailed)
  .addError(Errors.Overloaded)
  .middleware(Ready)
  .middleware(Bearer)
  .annotateContext(requiresScope("admin"))
  .annotateContext(
    doc(
      "Compare with the database (extension)",
      "Reads all records of the database, or of one table, and names those that differ from memory and still do a moment later; changes nothing."
    )
  )

const reconcile = HttpApiEndpoint.post("reconcile")`/reconcile`
  .addSuccess(Integrity.Reconciled)
  .addError(Errors.StoreFailed)
  .addError(Errors.Overloaded)
  .middleware(Ready)
  .middleware(Bearer)
  .annotateContext(audits("reconcile", "admin"))
  .annotateContext(
    doc(
      "Repair now what differs from the database (extension)",
      "The periodic compare, at once: what differs is applied as ordinary changes."
    )
  )

const execute = HttpApiEndpoint.post("execute")`/job/execute`
  .setPayload(Jobs.JobExecution)
  .addSuccess(Jobs.JobAccepted, { status: 202 })
  .addError(Errors.Overloaded)
  .middleware(JsonBody)
  .middleware(Ready)
  .middleware(Bearer)
  .annotateContext(requiresScope("ingest"))
  .annotateContext(
    doc("Run a job (extension)", "Hands over a job to this SSP (D35); it is run if no other SSP holds it.")
  )

const jobs = JobEndpoints.list
  .middleware(Ready)
  .middleware(Bearer)
  .annotateContext(
    doc("List jobs (extension)", "Of one table, by status if given, in key order; `next` is the id to go on behind.")
  )

const job = JobEndpoints.readJob
  .middleware(Ready)
  .middleware(Bearer)
  .annotateContext(doc("Look at a job (extension)", "With its errors and the SSP that runs it."))

const retry = JobEndpoints.retry
  .middleware(Ready)
  .middleware(Bearer)
  .annotateContext(doc("Run a failed job again (extension)", "With attempts counted anew; `errors` keeps what was."))

const cancel = JobEndpoints.cancel
  .middleware(Ready)
  .middleware(Bearer)
  .annotateContext(
    doc("Cancel a job (extension)", "One that is not over becomes `failed`; a call under way on this SSP is cut off.")
  )

class Data extends HttpApiGroup.make("data")
  .add(ingest)
  .add(reset)
  .add(log)
  .annotate(OpenApi.Description, "Record changes in.") {}
class View extends HttpApiGroup.make("view")
  .add(register)
  .add(unregister)
  .add(free)
  .add(view)
  .add(stream)
  .add(views)
  .annotate(OpenApi.Description, "Live views out.") {}
class Browser extends HttpApiGroup.make("browser")
  .add(openStream)
  .add(changeStream)
  .add(token)
  .add(revoke)
  .add(touch)
  .annotate(OpenApi.Description, BrowserEndpoints.description) {}
class Monitor extends HttpApiGroup.make("monitor")
  .add(health)
  .add(version)
  .add(info)
  .add(debugView)
  .add(debugDeps)
  .add(overview)
  .add(metrics)
  .add(progress)
  .annotate(OpenApi.Description, "How it is doing.") {}
class Integrities extends HttpApiGroup.make("integrity")
  .add(nodes)
  .add(compare)
  .add(reconcile)
  .annotate(OpenApi.Description, "Whether it is all there.") {}
class Job extends HttpApiGroup.make("job")
  .add(execute)
  .add(jobs)
  .add(job)
  .add(retry)
  .add(cancel)
  .annotate(OpenApi.Description, "Jobs, and those that failed.") {}

/** Prefixes of paths that only a scheduler calls: with certificates of nodes (SVC_TLS_CA_FILE) no other caller may. */
export const nodePaths: ReadonlyArray<string> = ["/ingest", "/job/execute"]

export class SspApi extends HttpApi.make("ssp")
  .add(Data)
  .add(View)
  .add(Browser)
  .add(Monitor)
  .add(Integrities)
  .add(Job)
  .addError(Errors.InvalidRequest)
  .addError(Errors.NotFound)
  .addError(Errors.RateLimited)
  .addError(Errors.Forbidden)
  .addError(Errors.UnsupportedMediaType)
  .addError(Errors.Internal)
  .annotate(HttpApi.AdditionalSchemas, StreamEvents.streamSchemas)
  .annotateContext(
    OpenApi.annotations({
      title: "Live-query sidecar: SSP",
      transform: (spec) => withExamples(withoutDecodeError(spec)),
      description:
        "Every error answer is `{ code, message, details? }`; `code` is stable. Any content type is read as JSON. Paths are exact."
    })
  ) {}
