/**
 * The scheduler's HTTP contract: every endpoint with every status, and the checks before its handler runs.
 *
 * Declared once; handlers, the OpenAPI document and the tests derive from it. No endpoint asks for a secret unless the
 * operator sets one (specification, Authentication). Checks: route, bearer, readiness, size and shape (D6).
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
import { JsonBody } from "./jsonBody.ts"
import { doc, optionalBearer, withExamples, withoutDecodeError } from "./openApi.ts"
import * as Overview from "./overview.ts"
import * as ReplicaFile from "./replicaFile.ts"
import * as Own from "./schedulerWire.ts"
import * as StreamEvents from "./streamEvents.ts"
import * as ViewEndpoints from "./viewEndpoints.ts"
import * as Wire from "./wire.ts"

/**
 * `Authorization: Bearer <SVC_SCHEDULER_AUTH_SECRET>`, or one of SVC_AUTH_SECRETS with the endpoint's scope, if either
 * is set (D15).
 */
export class SchedulerBearer extends HttpApiMiddleware.Tag<SchedulerBearer>()("SchedulerApi/Bearer", {
  failure: Schema.Union(Errors.Unauthorized, Errors.ScopeRequired),
  provides: Caller,
  security: {
    bearer: HttpApiSecurity.bearer.pipe(
      HttpApiSecurity.annotate(
        OpenApi.Description,
        "The value of SVC_SCHEDULER_AUTH_SECRET, or a secret of SVC_AUTH_SECRETS with the scope that the operation names; asked for only where one of the two is set"
      )
    )
  }
}) {}

/**
 * As {@link SchedulerBearer}, or a token; if the scheduler asks for no secret, the secret of the SSPs is needed (D49):
 * a caller that cannot read a view at its SSP cannot read it here.
 */
export class ViewBearer extends HttpApiMiddleware.Tag<ViewBearer>()("SchedulerApi/ViewBearer", {
  failure: Schema.Union(Errors.Unauthorized, Errors.ScopeRequired),
  provides: Caller,
  security: {
    view: HttpApiSecurity.bearer.pipe(
      HttpApiSecurity.annotate(
        OpenApi.Description,
        "As `bearer`, or a token of `POST /view/token` for the views that are asked for; where no secret is set here, the value of SVC_AUTH_SECRET"
      )
    )
  }
}) {}

/** 503 while the scheduler clones the database (D25). */
export class Cloned extends HttpApiMiddleware.Tag<Cloned>()("SchedulerApi/Cloned", {
  failure: Errors.SchedulerCloning
}) {}

const ingest = HttpApiEndpoint.post("ingest")`/ingest`
  .setPayload(Wire.Ingest)
  .addSuccess(Own.SchedulerIngested)
  .addError(Errors.InvalidOperation)
  .addError(Errors.ReplicaFailed)
  .addError(Errors.Overloaded)
  .middleware(JsonBody)
  .middleware(Cloned)
  .middleware(SchedulerBearer)
  .annotateContext(requiresScope("ingest"))
  .annotateContext(
    doc(
      "Take a record change",
      "Answers when the change is durable and the ready SSPs have applied it, or have had their time (D26). An array is taken whole, in order (extension)."
    )
  )

const query = HttpApiEndpoint.post("query")`/proxy/query`
  .setPayload(Own.ProxyQuery)
  .addSuccess(
    Schema.Unknown.annotations({
      identifier: "QueryResult",
      examples: [Examples.queryResult],
      description:
        "The value of the statement; of several, an array of values (D28). `SELECT *, _svc_rv` shows versions (D4)"
    })
  )
  .addError(Errors.InvalidQuery)
  .addError(Errors.QueryFailed)
  .addError(Errors.Overloaded)
  .middleware(JsonBody)
  .middleware(Cloned)
  .middleware(SchedulerBearer)
  .annotateContext(requiresScope("read"))
  .annotateContext(
    doc(
      "Query the snapshot",
      "Read-only, on the frozen snapshot, or on the replica when nothing is frozen. The header `svc-snapshot-seq` names the position (extension)."
    )
  )

const signin = HttpApiEndpoint.post("signin")`/proxy/signin`
  .addSuccess(Wire.Ok)
  .middleware(SchedulerBearer)
  .annotateContext(requiresScope("read"))
  .annotateContext(doc("Sign in", "Always 200, whatever the body; no authentication is performed."))

const use = HttpApiEndpoint.post("use")`/proxy/use`
  .addSuccess(Wire.Ok)
  .middleware(SchedulerBearer)
  .annotateContext(requiresScope("read"))
  .annotateContext(doc("Use", "Always 200, whatever the body; namespace and database stay what they are."))

const register = HttpApiEndpoint.post("register")`/view/register`
  .setPayload(Wire.ViewRegistration)
  .addSuccess(Own.ViewAssignment)
  .addError(Errors.InvalidQuery)
  .addError(Errors.ViewQuarantined)
  .addError(Errors.NoSspAvailable)
  .addError(Errors.Overloaded)
  .middleware(JsonBody)
  .middleware(SchedulerBearer)
  .annotateContext(audits("view.register", "register"))
  .annotateContext(
    doc(
      "Register a view",
      "Picks an SSP by the configured strategy and registers the view there; an id that is known keeps its SSP while that is ready (D31)."
    )
  )

const unregister = HttpApiEndpoint.post("unregister")`/view/unregister`
  .setPayload(Wire.ViewUnregistration)
  .addSuccess(Wire.Ok)
  .addError(Errors.ViewNotFound)
  .addError(Errors.Overloaded)
  .middleware(JsonBody)
  .middleware(SchedulerBearer)
  .annotateContext(audits("view.unregister", "register"))
  .annotateContext(doc("Unregister a view", "Its SSP is told."))

const free = HttpApiEndpoint.post("free")`/view/free`
  .setPayload(Own.ViewFreed)
  .addSuccess(Wire.Ok)
  .addError(Errors.ViewNotFound)
  .addError(Errors.SspUnreachable)
  .middleware(JsonBody)
  .middleware(SchedulerBearer)
  .annotateContext(audits("view.free", "admin"))
  .annotateContext(
    doc(
      "Free a view that is set aside (extension)",
      "Lets its query be placed again (D48), under every id that has it, and frees it at the SSPs; 404 where nothing of this id is set aside, 502 where an SSP does not take the scheduler's secret."
    )
  )

const registerQuery = HttpApiEndpoint.post("registerQuery")`/query/register`
  .setPayload(Own.QueryRegistration)
  .addSuccess(Own.QueryRegistered)
  .addError(Errors.InvalidQuery)
  .addError(Errors.ViewQuarantined)
  .addError(Errors.NoSspAvailable)
  .addError(Errors.Overloaded)
  .middleware(JsonBody)
  .middleware(SchedulerBearer)
  .annotateContext(audits("view.register", "register"))
  .annotateContext(doc("Register a view by its plan", "As `/view/register`, answered with the SSP's address (D33)."))

const views = HttpApiEndpoint.get("views")`/views`
  .setUrlParams(
    Schema.Struct({
      ...Overview.ViewListing,
      ssp: Schema.optional(Schema.String).annotations({ description: "Only those of this SSP" })
    })
  )
  .addSuccess(Overview.AssignedViews)
  .middleware(SchedulerBearer)
  .annotateContext(requiresScope("read"))
  .annotateContext(
    doc("List the views (extension)", "In key order, page by page, each with the SSP that maintains it.")
  )

/** Errors of a request that the scheduler passes on to an SSP, beside the SSP's own errors. */
const PassedOn = Schema.Union(Errors.Unauthorized, Errors.NoSspAvailable, Errors.SspNotReady, Errors.SspUnreachable)

const passed =
  "Asked of the SSP that has the view, with the caller's own `Authorization`, or with SVC_AUTH_SECRET where SVC_SCHEDULER_AUTH_SECRET is set and the caller has sent that; the answer is passed on as it is."

const view = ViewEndpoints.read
  .addError(PassedOn)
  .addError(Errors.ViewNotFound)
  .addError(Errors.ViewQuarantined)
  .middleware(SchedulerBearer)
  .annotateContext(
    doc("Read a view (extension)", `The current result (D11), with \`ETag\` and 304 as the SSP answers them. ${passed}`)
  )

const stream = ViewEndpoints.stream
  .addError(PassedOn)
  .addError(Errors.ViewNotFound)
  .addError(Errors.ViewQuarantined)
  .addError(Errors.Overloaded)
  .middleware(SchedulerBearer)
  .annotateContext(doc("Follow a view (extension)", `${StreamEvents.streamDoc}${StreamEvents.lastEventId} ${passed}`))

const debugView = ViewEndpoints.debug
  .addError(Errors.Unauthorized)
  .addError(Errors.ViewNotFound)
  .addError(Errors.ViewQuarantined)
  .addError(Errors.NoSspAvailable)
  .addError(Errors.SspUnreachable)
  .middleware(SchedulerBearer)
  .annotateContext(doc("Look inside a view (extension)", `Cache, dependencies and plan (D13). ${passed}`))

const overview = HttpApiEndpoint.get("overview")`/overview`
  .addSuccess(Overview.SchedulerOverview)
  .middleware(SchedulerBearer)
  .annotateContext(requiresScope("read"))
  .annotateContext(
    doc(
      "How the cluster is doing, in one answer (extension)",
      "Counts from memory, cheap enough to ask every second; the dashboard at `/` does."
    )
  )

const join = HttpApiEndpoint.post("join")`/ssp/register`
  .setPayload(Wire.SspRegistration)
  .addSuccess(Wire.SspRegistered, { status: 202 })
  .addError(Errors.SspFenced)
  .addError(Errors.Overloaded)
  .middleware(JsonBody)
  .middleware(Cloned)
  .middleware(SchedulerBearer)
  .annotateContext(audits("ssp.register", "ssp"))
  .annotateContext(
    doc(
      "Register an SSP",
      "Freezes the snapshot; the SSP pulls it through the proxy and is polled at `/health` until it is ready."
    )
  )

const heartbeat = HttpApiEndpoint.post("heartbeat")`/ssp/heartbeat`
  .setPayload(Wire.Heartbeat)
  .addSuccess(Wire.Ok)
  .addError(Errors.SspNotRegistered)
  .addError(Errors.BufferOverflow)
  .addError(Errors.SspFenced)
  .middleware(JsonBody)
  .middleware(SchedulerBearer)
  .annotateContext(requiresScope("ssp"))
  .annotateContext(doc("An SSP is alive", "404: register again; 409 `BUFFER_OVERFLOW`: bootstrap again."))

const leave = HttpApiEndpoint.post("leave")`/ssp/deregister`
  .setPayload(Wire.SspDeregistration)
  .addSuccess(Wire.Ok)
  .middleware(JsonBody)
  .middleware(SchedulerBearer)
  .annotateContext(audits("ssp.deregister", "ssp"))
  .annotateContext(doc("An SSP stops (extension)", "Its views and jobs move to others at once (D31)."))

const feed = HttpApiEndpoint.get("feed")`/feed`
  .setUrlParams(Wire.FeedQuery)
  .addSuccess(HttpApiSchema.Text({ contentType: Wire.feedType }).annotations({ examples: [Examples.feedLines] }))
  .addError(Errors.SspNotRegistered)
  .addError(Errors.BufferOverflow)
  .middleware(SchedulerBearer)
  .annotateContext(requiresScope("ssp"))
  .annotateContext(
    doc(
      "Follow tables of the log (extension)",
      "Lines of JSON that go on (D61): events of these tables as SSPs are sent them, each with `prev`, the position of the event before it in its table, and `{through}` where everything of these tables up to there has been sent. 404: register again; 409: bootstrap again."
    )
  )

const applied = HttpApiEndpoint.post("applied")`/ssp/applied`
  .setPayload(Wire.SspApplied)
  .addSuccess(Wire.Ok)
  .addError(Errors.SspNotRegistered)
  .middleware(JsonBody)
  .middleware(SchedulerBearer)
  .annotateContext(requiresScope("ssp"))
  .annotateContext(
    doc(
      "What an SSP has applied (extension)",
      "Of an SSP that follows the feed; answers of `/ingest` wait for it (D61). A body of the feed's media type without a length goes on: each line is such an object, 200 is answered at once, and what is wrong with a line cuts the connection; a server may refuse it."
    )
  )

const dispatch = HttpApiEndpoint.post("dispatch")`/job/dispatch`
  .setPayload(Own.JobDispatch)
  .addSuccess(Schema.String.annotations({ identifier: "SspId", examples: ["ssp-1"] }))
  .addError(Errors.NoSspAvailable)
  .addError(Errors.ReplicaFailed)
  .addError(Errors.Overloaded)
  .middleware(JsonBody)
  .middleware(SchedulerBearer)
  .annotateContext(requiresScope("ingest"))
  .annotateContext(
    doc("Assign a job to an SSP", "Answers the id of the SSP. A job whose record is not known is created first (D36).")
  )

const result = HttpApiEndpoint.post("result")`/job/result`
  .setPayload(Own.JobResult)
  .addSuccess(Wire.Ok)
  .addError(Errors.ReplicaFailed)
  .addError(Errors.Overloaded)
  .middleware(JsonBody)
  .middleware(SchedulerBearer)
  .annotateContext(requiresScope("ssp"))
  .annotateContext(
    doc(
      "A job's result",
      "200 for an unknown job too (D36). The `result` of one that is done is kept and shown by `/jobs`."
    )
  )

const passedJob =
  "Asked of an SSP that runs this table, with the caller's own `Authorization`; its answer is passed on, with the results that were reported here."

const jobs = JobEndpoints.list
  .addError(PassedOn)
  .middleware(SchedulerBearer)
  .annotateContext(doc("List jobs (extension)", passedJob))

const job = JobEndpoints.readJob
  .addError(PassedOn)
  .middleware(SchedulerBearer)
  .annotateContext(doc("Look at a job (extension)", passedJob))

const retry = JobEndpoints.retry
  .addError(PassedOn)
  .addError(Errors.ReplicaFailed)
  .addError(Errors.Overloaded)
  .middleware(SchedulerBearer)
  .annotateContext(
    doc(
      "Run a failed job again (extension)",
      "An SSP checks the caller's secret; where no database is configured the scheduler then writes the record, else the SSP does."
    )
  )

const cancel = JobEndpoints.cancel
  .addError(PassedOn)
  .addError(Errors.ReplicaFailed)
  .addError(Errors.Overloaded)
  .middleware(SchedulerBearer)
  .annotateContext(doc("Cancel a job (extension)", "One that is not over becomes `failed`; otherwise as its retry."))

export const metrics = HttpApiEndpoint.get("metrics")`/metrics`
  .setUrlParams(Schema.Struct({ format: Schema.optional(Schema.String) }))
  .addSuccess(Own.SchedulerMetrics)
  .middleware(SchedulerBearer)
  .annotateContext(requiresScope("metrics"))
  .annotateContext(
    doc(
      "Metrics",
      "JSON; with `Accept: text/plain` or `?format=prometheus` the Prometheus text format (extension, D34)."
    )
  )

export const health = HttpApiEndpoint.get("health")`/health`
  .addSuccess(Own.SchedulerHealthy)
  .addSuccess(Own.SchedulerUnavailable, { status: 503 })
  .annotateContext(open)
  .annotateContext(doc("Health", "200 when at least one SSP is ready."))

const info = HttpApiEndpoint.get("info")`/info`
  .addSuccess(Wire.Info)
  .middleware(SchedulerBearer)
  .annotateContext(requiresScope("read"))
  .annotateContext(doc("Entities", "The scheduler and every registered SSP."))

export const progress = HttpApiEndpoint.get("progress")`/progress`
  .addSuccess(Own.Progress)
  .middleware(SchedulerBearer)
  .annotateContext(requiresScope("read"))
  .annotateContext(doc("Progress of long work (extension)", "Cloning, and how far each SSP is behind (D34)."))

export const livez = HttpApiEndpoint.get("livez")`/livez`
  .addSuccess(Wire.Ok)
  .annotateContext(open)
  .annotateContext(doc("Liveness (extension)", "Answers as long as the process lives."))

export const readyz = HttpApiEndpoint.get("readyz")`/readyz`
  .addSuccess(Wire.Ok)
  .middleware(Cloned)
  .annotateContext(open)
  .annotateContext(doc("Readiness (extension)", "200 when `/ingest` is taken."))

const nodes = HttpApiEndpoint.get("nodes")`/integrity`
  .setUrlParams(Schema.Struct(Integrity.NodeQuery))
  .addSuccess(Schema.Union(Integrity.Tables, Integrity.Node))
  .addError(Errors.ReplicaFailed)
  .addError(Errors.Overloaded)
  .middleware(Cloned)
  .middleware(SchedulerBearer)
  .annotateContext(requiresScope("read"))
  .annotateContext(
    doc(
      "Hashes of the replica (extension)",
      "Roots of all tables, or a node of one table's Merkle tree with what is below it (D41)."
    )
  )

export const replica = HttpApiEndpoint.get("replica")`/replica`
  .addSuccess(
    HttpApiSchema.Text({ contentType: ReplicaFile.contentType }).annotations({ examples: ["SQLite format 3"] })
  )
  .addError(Errors.Overloaded)
  .addError(Errors.ReplicaFailed)
  .middleware(Cloned)
  .middleware(SchedulerBearer)
  .annotateContext(requiresScope("read"))
  .annotateContext(
    doc(
      "The replica as a file (extension)",
      "An SQLite file of every record as of the position in `svc-snapshot-seq`, of the log in `svc-log-id`, with its SHA-256 in `Repr-Digest`. Each scheduler answers for itself; others of the same log start from it. One at a time, and none while an SSP loads: 503 OVERLOADED."
    )
  )

class Data extends HttpApiGroup.make("data")
  .add(ingest)
  .add(query)
  .add(signin)
  .add(use)
  .add(replica)
  .annotate(OpenApi.Description, "Record changes in, snapshots out.") {}
class View extends HttpApiGroup.make("view")
  .add(register)
  .add(unregister)
  .add(free)
  .add(registerQuery)
  .add(views)
  .add(view)
  .add(stream)
  .annotate(OpenApi.Description, "Views and the SSPs that hold them.") {}
class Browser extends HttpApiGroup.make("browser")
  .add(BrowserEndpoints.openStream)
  .add(BrowserEndpoints.changeStream)
  .add(BrowserEndpoints.token)
  .add(BrowserEndpoints.revoke)
  .add(BrowserEndpoints.touch)
  .middlewareEndpoints(ViewBearer)
  .annotate(OpenApi.Description, BrowserEndpoints.description) {}
class Ssp extends HttpApiGroup.make("ssp")
  .add(join)
  .add(heartbeat)
  .add(leave)
  .add(feed)
  .add(applied)
  .annotate(OpenApi.Description, "SSPs coming, living and going.") {}
class Job extends HttpApiGroup.make("job")
  .add(dispatch)
  .add(result)
  .add(jobs)
  .add(job)
  .add(retry)
  .add(cancel)
  .annotate(OpenApi.Description, "Jobs and the SSPs that run them.") {}
class Monitor extends HttpApiGroup.make("monitor")
  .add(metrics)
  .add(health)
  .add(info)
  .add(progress)
  .add(livez)
  .add(readyz)
  .add(debugView)
  .add(overview)
  .annotate(OpenApi.Description, "How it is doing.") {}
class Integrities extends HttpApiGroup.make("integrity")
  .add(nodes)
  .annotate(OpenApi.Description, "Whether it is all there.") {}

/** Prefixes of paths that only SSPs call: with certificates of nodes (SVC_TLS_CA_FILE) no other caller may. */
export const nodePaths: ReadonlyArray<string> = ["/ssp/", "/feed", "/job/result", "/proxy/signin", "/proxy/use"]

export class SchedulerApi extends HttpApi.make("scheduler")
  .add(Data)
  .add(View)
  .add(Browser)
  .add(Ssp)
  .add(Job)
  .add(Monitor)
  .add(Integrities)
  .addError(Errors.InvalidRequest)
  .addError(Errors.NotFound)
  .addError(Errors.RateLimited)
  .addError(Errors.NotLeader)
  .addError(Errors.Forbidden)
  .addError(Errors.MisdirectedRequest)
  .addError(Errors.UnsupportedMediaType)
  .addError(Errors.Internal)
  .annotate(HttpApi.AdditionalSchemas, StreamEvents.streamSchemas)
  .annotateContext(
    OpenApi.annotations({
      title: "Live-query sidecar: scheduler",
      transform: (spec) => withExamples(optionalBearer(withoutDecodeError(spec))),
      description:
        "Every error answer is `{ code, message, details? }`; `code` is stable. Any content type is read as JSON. Paths are exact."
    })
  ) {}
