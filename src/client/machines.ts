/**
 * The two state machines of the client, as tables: of a connection, and of a view that is followed.
 *
 * Pure, without clock and network: the shell (`stream.ts`, `sharedView.ts`) makes the events and carries out the
 * actions in their order. Every state has a cell for every event, or the tables would not compile; many are `stay`,
 * because the event can come late.
 */

interface Move<S, A> {
  readonly to: S
  readonly emit: ReadonlyArray<A>
}

/** The event changes nothing. */
export const unchanged = 0

type Table<S extends string, E extends string, A> = {
  readonly [state in S]: { readonly [event in E]: Move<S, A> | typeof unchanged }
}

/** `waiting`: a timer runs, before the first attempt too, so that views followed in one go share one request. */
export type ConnectionState = "idle" | "waiting" | "opening" | "open"
/**
 * `wanted`: some view is to be carried and is not yet; `unwanted`: no view is left to carry; `due`: the timer fired;
 * `woken`: the network is back, or the page is visible again; `opened`: the stream is open; `broke`: it did not open or
 * was cut, and may come back; `denied`: the server refuses it for good.
 */
export type ConnectionEvent = "wanted" | "unwanted" | "due" | "woken" | "opened" | "broke" | "denied"
/**
 * `soon`: start the timer at once; `wait`: start it by the rule of {@link backoffMs}; `cancel` it; `open`, `close` the
 * stream; `sync`: tell the server which views to add and drop; `cut`: tell the views of a break; `fail`: tell them that
 * it is final.
 */
export type ConnectionAction = "soon" | "wait" | "cancel" | "open" | "close" | "sync" | "cut" | "fail"

const to = <S, A>(state: S, ...emit: ReadonlyArray<A>): Move<S, A> => ({ to: state, emit })

/** Transitions of a connection. */
export const connection: Table<ConnectionState, ConnectionEvent, ConnectionAction> = {
  idle: {
    wanted: to("waiting", "soon"),
    unwanted: unchanged,
    due: unchanged,
    woken: unchanged,
    opened: unchanged,
    broke: unchanged,
    denied: unchanged
  },
  waiting: {
    wanted: unchanged,
    unwanted: to("idle", "cancel"),
    due: to("opening", "open"),
    woken: to("opening", "cancel", "open"),
    opened: unchanged,
    broke: unchanged,
    denied: unchanged
  },
  opening: {
    wanted: unchanged,
    unwanted: to("idle", "close"),
    due: unchanged,
    woken: unchanged,
    opened: to("open", "sync"),
    broke: to("waiting", "close", "cut", "wait"),
    denied: to("idle", "close", "fail")
  },
  open: {
    wanted: to("open", "sync"),
    unwanted: to("idle", "close"),
    due: unchanged,
    woken: unchanged,
    opened: unchanged,
    broke: to("waiting", "close", "cut", "wait"),
    denied: to("idle", "close", "fail")
  }
}

/**
 * `asking`: requests a token, and for a named view its registration; `joining`: waits for the first state of a stream;
 * `pausing`: waits before joining again; `resting`: waits before asking again; `failed`: gave up until the application
 * retries.
 */
export type ViewState = "idle" | "asking" | "joining" | "live" | "pausing" | "resting" | "failed"
/**
 * `looked`: the first holder came; `left`: the grace period after the last holder is over; `granted`: a token arrived;
 * `shown`: a state of the server is complete; `cut`: the connection broke; `again`: the stream ended and can be joined
 * again; `anew`: it ended and needs a new token or registration; `final`: neither helps; `due`: the timer fired;
 * `retry`: the application asks to retry.
 */
export type ViewEvent = "looked" | "left" | "granted" | "shown" | "cut" | "again" | "anew" | "final" | "due" | "retry"
/**
 * `ask` for a token; `join` the stream; `part` from it; `rest`: start the timer; `cancel` the timer; `tell` the
 * console.
 */
export type ViewAction = "ask" | "join" | "part" | "rest" | "cancel" | "tell"

/** Transitions of a view. */
export const view: Table<ViewState, ViewEvent, ViewAction> = {
  idle: {
    looked: to("asking", "ask"),
    left: unchanged,
    granted: unchanged,
    shown: unchanged,
    cut: unchanged,
    again: unchanged,
    anew: unchanged,
    final: unchanged,
    due: unchanged,
    retry: unchanged
  },
  asking: {
    looked: unchanged,
    left: to("idle"),
    granted: to("joining", "join"),
    shown: unchanged,
    cut: unchanged,
    again: to("resting", "rest"),
    anew: to("resting", "rest"),
    final: to("failed", "tell"),
    due: unchanged,
    retry: unchanged
  },
  joining: {
    looked: unchanged,
    left: to("idle", "part"),
    granted: unchanged,
    shown: to("live"),
    cut: unchanged,
    again: to("pausing", "part", "rest"),
    anew: to("resting", "part", "rest"),
    final: to("failed", "part", "tell"),
    due: unchanged,
    retry: unchanged
  },
  live: {
    looked: unchanged,
    left: to("idle", "part"),
    granted: unchanged,
    shown: unchanged,
    cut: to("joining"),
    again: to("pausing", "part", "rest"),
    anew: to("resting", "part", "rest"),
    final: to("failed", "part", "tell"),
    due: unchanged,
    retry: unchanged
  },
  pausing: {
    looked: unchanged,
    left: to("idle", "cancel"),
    granted: unchanged,
    shown: unchanged,
    cut: unchanged,
    again: unchanged,
    anew: unchanged,
    final: to("failed", "cancel", "tell"),
    due: to("joining", "join"),
    retry: to("joining", "cancel", "join")
  },
  resting: {
    looked: unchanged,
    left: to("idle", "cancel"),
    granted: unchanged,
    shown: unchanged,
    cut: unchanged,
    again: unchanged,
    anew: unchanged,
    final: to("failed", "cancel", "tell"),
    due: to("asking", "ask"),
    retry: to("asking", "cancel", "ask")
  },
  failed: {
    looked: unchanged,
    left: to("idle"),
    granted: unchanged,
    shown: unchanged,
    cut: unchanged,
    again: unchanged,
    anew: unchanged,
    final: unchanged,
    due: unchanged,
    retry: to("asking", "ask")
  }
}

/**
 * Event of the view's table for each reason with which the server ends a stream. A reason unknown here comes from a
 * newer server and counts as `again`.
 */
const ends: { readonly [reason: string]: "again" | "anew" | "final" } = {
  behind: "again",
  moved: "again",
  shutdown: "again",
  rebootstrap: "again",
  replaced: "again",
  reset: "again",
  failed: "again",
  unauthorized: "anew",
  unregistered: "anew",
  expired: "anew",
  quarantined: "final",
  revoked: "final",
  tooLarge: "final"
}

/** Event of a view after its stream ended with `reason`. */
export const onEnd = (reason: string): "again" | "anew" | "final" =>
  Object.hasOwn(ends, reason) ? ends[reason]! : "again"

/** Error codes that no retry cures; `anew` if a new token or registration may help. */
const codes: { readonly [code: string]: "anew" | "final" } = {
  UNAUTHORIZED: "anew",
  VIEW_NOT_FOUND: "anew",
  FORBIDDEN: "final",
  SCOPE_REQUIRED: "final",
  VIEW_QUARANTINED: "final",
  INVALID_REQUEST: "final",
  INVALID_QUERY: "final",
  NOT_FOUND: "final"
}

/** Event of a view after the server refused it with the error `code`. */
export const onRefused = (code: string): "again" | "anew" | "final" =>
  Object.hasOwn(codes, code) ? codes[code]! : "again"

const baseMs = 500
const capMs = 30_000

/**
 * Delay before attempt number `failures` + 1, in milliseconds: at random from half to all of 0.5 s, 1 s, 2 s ... 30 s,
 * so that the clients of a restarted server do not all come back at once; at least the delay that the server asks for.
 */
export const backoffMs = (failures: number, random: number, retryAfterMs = 0): number =>
  Math.max(retryAfterMs, Math.min(capMs, baseMs * 2 ** Math.min(failures, 10)) * (0.5 + random / 2))
