/**
 * The definitions that a SurrealDB needs for this service, as one text: the service's tables, the feed, and their
 * consequences for writers.
 *
 * Printed for people who define schemas by hand, and run by a command for all others; both use the same list. A choice
 * that can make other people's writes fail has to be made explicitly: hence the long option names.
 */
import * as Feed from "./surrealFeed.ts"
import * as Schema from "./surrealSchema.ts"

/** Placeholder for the secret in printed texts. */
export const secretPlaceholder = (receiver: "ssp" | "scheduler"): string =>
  receiver === "ssp" ? "<SVC_AUTH_SECRET>" : "<SVC_SCHEDULER_AUTH_SECRET>"

export type Receiver = "ssp" | "scheduler"

const common = (url: string): string =>
  `Setup of SurrealDB 3 for surreal-live-sidecar: its tables, the events that post changes to ${url}, and functions for clients. Everything can be run again; run it again when tables are added.
The server must be allowed to post there: surreal start --allow-net <host:port of that address> (environment SURREAL_CAPS_ALLOW_NET). Without it every write to a table with a synchronous event fails.`

const commonChanges =
  "Setup of SurrealDB 3 for surreal-live-sidecar: its tables, the events that say which record was written, and functions for clients. Everything can be run again; run it again when tables are added."

const sspAnswers = `  ready: 200 once the change is durable here and in the views. Edges are written behind the answer, never before it: a write must not wait for a second write to the same database.
  older than what is known (a _svc_rv below the version): 200 and dropped, because a write must not fail for having been overtaken.
  starting, bootstrapping or failed: 503 SSP_NOT_READY, the write fails. A change must not be accepted by who cannot keep it; a bootstrap ends with a compare, because such changes are not announced again.
  queue full, to the store or to the edges: 503 OVERLOADED with Retry-After, the write fails. Accepting would mean growing without bound.
  own store fails: 500 STORE_FAILED, the write fails, nothing was applied.
  record above SVC_MAX_BODY_BYTES: 413; wrong secret: 401. These fail every time, until the setting is changed.`

const schedulerAnswers = `  Ready, Frozen, Updating: 200 once the change is in its log on disk and in its replica, also while no SSP is ready: they get it from the log. It waits for ready SSPs at most SVC_SCHEDULER_DELIVERY_WAIT_MS.
  Cloning: 503 SCHEDULER_CLONING, the write fails: it would be missing from what is being copied.
  disk full, log or replica fails: 500 REPLICA_FAILED, the write fails, nothing was delivered.
  record above the body limit: 413. This fails every time, until the setting is changed.`

const sync = (receiver: Receiver): string =>
  `SYNCHRONOUS events (the default): no committed write is missed while we are up, and writes depend on us.
The event runs inside the user's transaction, before it commits. The write waits for our answer; any answer but 2xx, and no answer, fails the statement and rolls its whole transaction back. The user sees "There was an error processing a remote HTTP request". What is answered when:
${receiver === "ssp" ? sspAnswers : schedulerAnswers}
  down: no answer. The write fails at once where the connection is refused; where packets are swallowed, after the time-out of the database's HTTP client. Until we are back, these tables cannot be written.
A slow answer keeps the transaction open that much longer, so two writers of one record meet more often and one of them is told to retry. Each row of a statement is a request of its own.
A change that was announced and then rolled back (a later statement failed, the commit met a conflict) stands in the views until the periodic compare takes it out.`

const changes = `CHANGE TABLE: no write waits for this service or fails because of it, and only what was committed is shown.
The event writes which record was written into ${Schema.changeTable}, in the user's transaction: what is rolled back leaves nothing. The service reads those rows and the records they name in one read transaction, shows them as one step (all records of a transaction together) and deletes the rows when that is durable with it.
While the service is away the rows stay: the table grows by one small row per written record until it is back, and takes room on the database's disk for as long.
The functions for clients leave their calls in the same table: what is rolled back registers nothing, and a call that cannot be carried out leaves its reason in ${Schema.refusalTable}.
The server need not be allowed to reach the network for any of this.
One service reads the table at a time: the scheduler where there is one, else the SSP. Tables defined AS SELECT, and surreal import, raise no events: the periodic compare finds what they change.`

const async = `ASYNCHRONOUS events: writes never wait and never fail because of us, and views lag behind.
The event runs after the commit, in the server's background task (SurrealDB 3 servers; an embedded engine has none and never runs it). What is refused or not answered is tried again ${Feed.retries} times; after that, and when the server ends first, the change is missed until the periodic compare finds it.
Changes may overtake each other, so an event sends the record as it is when it runs; states in between may never be seen. Rolled back writes are not announced.
The choice: synchronous where a view must not lag and the service is as available as the database; asynchronous where a write must never fail because of a sidecar.`

const removing = (tables: ReadonlyArray<string>): string =>
  `To take the feed away again (data, our tables and fn::svc_owns stay), run:\n${Feed.removal(tables)
    .map((statement) => `  ${statement};`)
    .join("\n")}`

const noTables =
  "No table is named, so no events are defined below: name them with --tables a,b, or set STORE_ADDR to a database server, whose tables are read then."

/** Every statement, in the order they have to run in. */
const definitions = (feed: Feed.Feed): ReadonlyArray<Schema.Definition> => [
  ...Schema.sharedDefinitions,
  ...Feed.feedDefinitions(feed)
]

/** One text of statements that are all applied or none. */
export const script = (feed: Feed.Feed): string => `BEGIN;\n${Schema.script(definitions(feed))}COMMIT;\n`

/** As {@link script}, with the reasons, for people; the text can be run as it is. */
export const printed = (feed: Feed.Feed, receiver: Receiver): string =>
  [
    ...[
      feed.mode === "changes" ? commonChanges : common(feed.url),
      ...(feed.tables.length === 0 ? [noTables] : []),
      feed.mode === "changes" ? changes : feed.mode === "sync" ? sync(receiver) : async,
      removing(feed.tables)
    ].map((text) => Schema.comment(text)),
    Schema.printed(definitions(feed))
  ].join("\n")
