/**
 * Definitions by which a SurrealDB reports every change, as SurrealQL: events that write into the change table or post
 * to `/ingest`, and functions with which clients register, refresh and unregister views.
 *
 * Why events report, and not functions: an event runs with the rights of the user that defined it, a function with
 * those of its caller. So the secret is a parameter that no user can read, and a record user who calls a function only
 * leaves a note (`_svc_call`) that an event picks up, checks and removes in the same transaction.
 */

import { identifier, quote } from "../surql/values/text.ts"
import * as Changes from "./surrealChanges.ts"
import { type Definition, isOwn, queryTable, refusalTable } from "./surrealSchema.ts"

const callTable = "_svc_call"
export const eventName = "svc_feed"

/**
 * `changes`: written into the change table by the transaction itself; no write waits, and a rolled-back write is not
 * told. `sync`: posted before the write commits; a post that fails or is refused fails the write, one that takes long
 * holds it up. `async`: posted after the commit by the database's background task (SurrealDB 3 servers only), tried
 * again when it fails; a write never waits, but changes arrive later and not always in order.
 */
export type FeedMode = "changes" | "sync" | "async"

export interface Feed {
  /** Base address of the SSP or scheduler as the database reaches it, without a trailing slash; only posts have it. */
  readonly url: string
  /** `SVC_AUTH_SECRET`; undefined if none is asked for (a scheduler). */
  readonly secret: string | undefined
  /** The tables whose changes are reported; the service's own never are. */
  readonly tables: ReadonlyArray<string>
  readonly mode: FeedMode
  /**
   * Whether record users may register queries themselves. The service runs them with its own rights, and edges show
   * which records matched: a user with free registration can find out any value, whatever the permissions.
   */
  readonly openToRecordUsers: boolean
}

/** How often the database tries an asynchronous event again. */
export const retries = 10

const post = (path: string, body: string): string => `http::post($svc_url + '${path}', ${body}, $svc_headers)`

const settings = ({ secret, url }: Feed): Definition => ({
  why: "Where to post and with which secret. Only events can read these; change them here when the address or the secret changes.",
  statements: [
    `DEFINE PARAM OVERWRITE $svc_url VALUE ${quote(url)} PERMISSIONS NONE`,
    `DEFINE PARAM OVERWRITE $svc_headers VALUE ${secret === undefined ? "{}" : `{ Authorization: ${quote(`Bearer ${secret}`)} }`} PERMISSIONS NONE`
  ]
})

/**
 * The types that JSON cannot tell apart, found in the value itself, so that declared and undeclared ones arrive as they
 * were. Elements of a list of one type are named once (`.*`), others by their position; unusual names are put in
 * back-ticks.
 */
const types: Definition = {
  why: "Names the values of a record that JSON has no type for, by path: links, datetimes, durations, decimals, uuids, sets, bytes, geometries, whole floats, ints beyond 53 bits.",
  statements: [
    `DEFINE FUNCTION OVERWRITE fn::svc_step($name: string) {
  IF $name != '' AND $name = string::replace($name, /[^A-Za-z0-9_]/, '') { RETURN '.' + $name };
  RETURN '.\`' + string::replace(string::replace($name, '\\\\', '\\\\\\\\'), '\`', '\\\\\`') + '\`';
}`,
    `DEFINE FUNCTION OVERWRITE fn::svc_types($value: any) {
  LET $kind = type::of($value);
  IF $kind IN ['string', 'bool', 'null'] { RETURN [] };
  IF $kind = 'int' { RETURN IF $value > 9007199254740991 OR $value < -9007199254740991 THEN [['', 'int ' + <string> $value]] ELSE [] END };
  IF $kind = 'float' {
    LET $text = <string> $value;
    RETURN IF $text IN ['NaN', 'Infinity', '-Infinity'] THEN [['', 'float ' + $text]] ELSE IF $value = math::floor($value) THEN [['', 'float']] ELSE [] END;
  };
  IF $kind = 'object' { RETURN array::flatten(object::entries($value).map(|$entry| fn::svc_types($entry[1]).map(|$found| [fn::svc_step($entry[0]) + $found[0], $found[1]]))) };
  IF $kind = 'array' OR $kind = 'set' {
    LET $each = (<array> $value).map(|$item| fn::svc_types($item));
    LET $kinds = array::distinct($each);
    LET $below = IF array::len($kinds) = 1 THEN $kinds[0].map(|$found| ['.*' + $found[0], $found[1]])
      ELSE array::flatten($each.map(|$list, $i| $list.map(|$found| ['.' + <string> $i + $found[0], $found[1]]))) END;
    RETURN IF $kind = 'set' THEN array::concat([['', 'set']], $below) ELSE $below END;
  };
  RETURN [['', $kind]];
}`
  ]
}

const change = (op: string, id: string, record: string): string =>
  post(
    "/ingest",
    `{ table: record::tb(${id}), op: ${op}, id: <string> ${id}, record: ${record}, types: object::from_entries(fn::svc_types(${record}).map(|$found| [string::slice($found[0], 1), $found[1]])) }`
  )

const syncEvent = (table: string): string =>
  `DEFINE EVENT OVERWRITE ${eventName} ON ${identifier(table)} ${Changes.eventCondition} THEN { LET $record = $after ?? {}; ${change("$event", "$value.id", "$record")} }`

/**
 * Sends the present state of the record, not the written one: an event that overtakes another then sends the same or a
 * later state.
 */
const asyncEvent = (table: string): string =>
  `DEFINE EVENT OVERWRITE ${eventName} ON ${identifier(table)} ASYNC RETRY ${retries} ${Changes.eventCondition} THEN { LET $id = $value.id; LET $record = (SELECT * FROM $id)[0] ?? {}; ${change("(IF $record = {} THEN 'DELETE' ELSE 'UPDATE' END)", "$id", "$record")} }`

const why: { readonly [M in Exclude<FeedMode, "changes">]: string } = {
  sync: "Tells of every change, inside the transaction and before it commits.",
  async: "Tells of every change, behind the commit."
}

const users = (tables: ReadonlyArray<string>): ReadonlyArray<string> => tables.filter((table) => !isOwn(table))

const withoutPosts = (tables: ReadonlyArray<string>): ReadonlyArray<string> =>
  users(tables).map((table) => `REMOVE EVENT IF EXISTS ${eventName} ON ${identifier(table)}`)

/** Posts alone need the address, the secret and the types of values. */
const withoutSettings: ReadonlyArray<string> = [
  ...["types", "step"].map((name) => `REMOVE FUNCTION IF EXISTS fn::svc_${name}`),
  "REMOVE PARAM IF EXISTS $svc_url",
  "REMOVE PARAM IF EXISTS $svc_headers"
]

/**
 * One kind of feed replaces the other in one transaction; waiting rows are still taken, and a compare finds the writes
 * in between.
 */
const events = ({ mode, tables }: Feed): ReadonlyArray<Definition> => {
  if (mode === "changes")
    return [
      Changes.changeTableDefinition,
      {
        why: "What an earlier setup posts with goes.",
        statements: [...withoutPosts(tables), ...withoutSettings]
      },
      Changes.events(tables)
    ]
  return [
    { why: why[mode], statements: users(tables).map(mode === "sync" ? syncEvent : asyncEvent) },
    {
      why: "Events of a change table, of an earlier setup, go.",
      statements: [...Changes.removal(tables), Changes.askCompareIfInstalled]
    }
  ]
}

/**
 * The rule of `viewId.ts` in the database's language: the check of a view's owner must parse an id as the service does.
 */
const key: Definition = {
  why: "The key a view is filed under, however its id is written.",
  statements: [
    `DEFINE FUNCTION OVERWRITE fn::svc_key($id: string) {
  LET $prefix = IF string::starts_with($id, 'incantation:') THEN 12 ELSE IF string::starts_with($id, '${queryTable}:') THEN ${queryTable.length + 1} ELSE 0 END;
  LET $text = string::slice($id, $prefix);
  LET $quoted = $prefix > 0 AND $text = /^[\`⟨]/;
  IF $quoted AND !($text = /^(\`([^\`\\\\]|\\\\[\`\\\\])*\`|⟨([^⟩\\\\]|\\\\[⟩\\\\])*⟩)$/) { THROW 'the quotes in the view id ' + $id + ' do not end where it ends' };
  LET $key = IF $quoted THEN string::replace(string::slice($text, 1, string::len($text) - 1), /\\\\([\`⟩\\\\])/, '$1') ELSE $text END;
  IF $key = '' { THROW 'the view id ' + $id + ' holds no key' };
  RETURN $key;
}`
  ]
}

const rowOf = (id: string): string => `type::record('${queryTable}', fn::svc_key(${id}))`

/**
 * `deleted`: the row is about to be deleted, so nothing more may be written to it: a second write would make the
 * deletion fail.
 */
const registrations = (mode: FeedMode): Definition => ({
  why: "A registration that somebody deletes takes its view away. Those we delete ourselves have lost their owner before, so they do not come back to us.",
  statements: [
    `DEFINE EVENT OVERWRITE svc_deleted ON ${queryTable} ${mode === "async" ? `ASYNC RETRY ${retries} ` : ""}WHEN $event = 'DELETE' AND $before.owner != NONE THEN { ${mode === "changes" ? Changes.registrationDeleted : post("/view/unregister", "{ id: $before.view, deleted: true }")} }`
  ]
})

/** Statement of an event that passes a call to the service. */
const told = (mode: FeedMode): string =>
  mode === "changes"
    ? `IF $after.op != 'refresh' { ${Changes.noteCall("{ op: $after.op, view: $after.view, clientId: $after.clientId, surql: $after.surql, params: $after.params ?? {}, ttl: <string> $after.ttl }")} };`
    : `IF $after.op = 'register' { ${post("/view/register", "{ id: $after.view, surql: $after.surql, clientId: $after.clientId, ttl: <string> $after.ttl, params: $after.params ?? {} }")} };
  IF $after.op = 'unregister' AND $owner != NONE { ${post("/view/unregister", "{ id: $after.view }")} };`

const callEvent = (
  mode: FeedMode
): string => `DEFINE EVENT OVERWRITE svc_call ON ${callTable} WHEN $event = 'CREATE' THEN {
  LET $row = ${rowOf("$after.view")};
  LET $owner = (SELECT VALUE clientId FROM $row)[0];
  IF $owner != NONE AND $owner != $after.clientId { THROW 'this view belongs to another client' };
  IF $after.op = 'register' AND ($after.surql = NONE OR $after.ttl = NONE OR !type::is_object($after.params ?? {})) { THROW 'a registration has a query, a time to live, and parameters by name' };
  IF $after.op = 'refresh' { UPDATE $row SET lastActiveAt = time::now() };
  ${told(mode)}
  DELETE $after.id;
}`

const client = "$client ?? <string> $auth.id"

const answer: { readonly [M in "changes" | "posts"]: string } = {
  changes: `A call is carried out once its transaction has committed; one that is rolled back leaves nothing. The answer is the registration: a row with this query stands there when the view is served, and its edges say the result; a call that cannot be carried out leaves its reason in ${refusalTable}, which the client may read and be told of by LIVE SELECT.`,
  posts:
    "A call that is refused fails with the reason; the answer is the registration, its edges say the result. A call is told before its transaction commits: one that is rolled back has registered all the same."
}

const calls = ({ mode, openToRecordUsers }: Feed): Definition => ({
  why: `${openToRecordUsers ? "OPEN to record users: a registered query is run with the rights of the service and its edges say which records matched, so a user that may register can find out any value of any record. " : "Closed to record users, but for refreshing and unregistering what was registered for them: a query is run with the rights of the service. "}For clients: fn::svc_register('incantation:mine', 'SELECT * FROM item WHERE v > $v', { v: 2 }, 10m), fn::svc_refresh('incantation:mine'), fn::svc_unregister('incantation:mine'). The client is the record user who calls; system users name one as the last argument. ${answer[mode === "changes" ? mode : "posts"]}`,
  statements: [
    `DEFINE TABLE OVERWRITE ${callTable} SCHEMAFULL PERMISSIONS FOR create WHERE fn::svc_owns(clientId)${openToRecordUsers ? "" : " AND op != 'register'"} FOR select, update, delete NONE`,
    `DEFINE FIELD IF NOT EXISTS op ON ${callTable} TYPE string ASSERT $value IN ['register', 'refresh', 'unregister']`,
    ...[
      ["view", "string"],
      ["clientId", "string"],
      ["surql", "option<string>"],
      ["params", "any"],
      ["ttl", "option<duration>"]
    ].map(([name, type]) => `DEFINE FIELD IF NOT EXISTS ${name} ON ${callTable} TYPE ${type}`),
    callEvent(mode),
    `DEFINE FUNCTION OVERWRITE fn::svc_register($id: string, $surql: string, $params: option<object>, $ttl: duration, $client: option<string>) {
  CREATE ${callTable} SET op = 'register', view = $id, surql = $surql, params = $params, ttl = $ttl, clientId = ${client} RETURN NONE;
  RETURN ${rowOf("$id")};
} PERMISSIONS ${openToRecordUsers ? "FULL" : "WHERE $auth.id = NONE"}`,
    ...["refresh", "unregister"].map(
      (op) =>
        `DEFINE FUNCTION OVERWRITE fn::svc_${op}($id: string, $client: option<string>) { CREATE ${callTable} SET op = '${op}', view = $id, clientId = ${client} RETURN NONE; RETURN NONE; } PERMISSIONS FULL`
    )
  ]
})

/**
 * All definitions of the feed. The service's tables (`surrealSchema.ts`) have to be defined first. May be run again,
 * which replaces the events.
 */
export const feedDefinitions = (options: Feed): ReadonlyArray<Definition> => [
  ...(options.mode === "changes" ? [] : [settings(options), types]),
  key,
  ...events(options),
  registrations(options.mode),
  calls(options)
]

/** Removes the feed's definitions; data and the service's tables stay. */
export const removal = (tables: ReadonlyArray<string>): ReadonlyArray<string> => [
  ...withoutPosts(tables),
  ...Changes.removal(tables),
  Changes.askCompareIfInstalled,
  `REMOVE EVENT IF EXISTS svc_deleted ON ${queryTable}`,
  `REMOVE TABLE IF EXISTS ${callTable}`,
  ...["register", "refresh", "unregister", "key"].map((name) => `REMOVE FUNCTION IF EXISTS fn::svc_${name}`),
  ...withoutSettings
]
