/**
 * An SSP as the scheduler sees it: its lifecycle as a total table (specification, states and transitions; D18, D27,
 * D29, D30, D31).
 *
 * Guards are not here: the caller has already checked that a poll belongs to this registration, that a buffer is too
 * long, that a deadline has passed. So the table alone defines the order of states.
 */
import { ignore, refuse, type Step, step, type Table, to } from "./machine.ts"

export type Member = "Absent" | "Bootstrapping" | "Replaying" | "Ready" | "Suspect" | "Overflowed"

/**
 * `Registered`: a registration was accepted. `Restored`: known from before the scheduler's restart. `Heartbeat`: one of
 * this process arrived. `PolledReady`, `PolledFailed`: the answer of `/health`. `Replayed`: everything up to the
 * replay's target is applied. `BufferExceeded`: more events wait than `max_buffer_per_ssp` allows (D55), or the log no
 * longer holds them. `Rejected`: the SSP refuses an event of the log. `Diverged`: its data is not the replica's at the
 * same position (D41). `BootstrapTimedOut`, `Stale`: a deadline has passed. `Deregistered`: it says goodbye. `Refused`:
 * a connection to it was refused, so no process listens there; `StillRefused`: the connection of the next health call
 * was refused too. `Reached`: the SSP has answered some call since.
 */
export type MemberEvent =
  | "Registered"
  | "Restored"
  | "Heartbeat"
  | "PolledReady"
  | "PolledFailed"
  | "Replayed"
  | "BufferExceeded"
  | "Rejected"
  | "Diverged"
  | "BootstrapTimedOut"
  | "Stale"
  | "Deregistered"
  | "Refused"
  | "StillRefused"
  | "Reached"

/**
 * `join`: a new registration with its share of a freeze and a delivery queue behind it. `release`: give the share back.
 * `replay`: deliver up to the log's head of now. `place`: take waiting views and jobs. `hand`: views and jobs wait for
 * another SSP. `clear`: empty the delivery queue. `remove`: leave the pool. `ok`, `unknown`, `conflict`: the
 * heartbeat's answer (200, 404, 409).
 */
export type MemberEffect =
  | "join"
  | "release"
  | "replay"
  | "place"
  | "hand"
  | "clear"
  | "remove"
  | "ok"
  | "unknown"
  | "conflict"

export const table = {
  Absent: {
    Registered: to("Bootstrapping", "it pulls the frozen snapshot; events wait for it", "join"),
    Restored: to("Replaying", "it has its data; what it missed comes from the log", "replay"),
    Heartbeat: ignore("it must register", "unknown"),
    PolledReady: ignore("of a registration that is over"),
    PolledFailed: ignore("of a registration that is over"),
    Replayed: refuse("nothing is sent to an SSP that is not there"),
    BufferExceeded: refuse("nothing is kept for an SSP that is not there"),
    Rejected: refuse("nothing is sent to an SSP that is not there"),
    Diverged: ignore("it will pull everything anyway"),
    BootstrapTimedOut: ignore("already gone"),
    Stale: ignore("already gone"),
    Deregistered: ignore("already gone"),
    Refused: ignore("already gone"),
    StillRefused: ignore("already gone"),
    Reached: ignore("of a registration that is over")
  },
  Bootstrapping: {
    Registered: to("Bootstrapping", "the newer registration counts; polls of the older one do not", "release", "join"),
    Restored: refuse("a pull does not survive the scheduler"),
    Heartbeat: ignore("alive, however long the pull takes", "ok"),
    PolledReady: to("Replaying", "it has the snapshot; what came since follows", "release", "replay"),
    PolledFailed: to("Absent", "it gave up; it registers again by itself", "release", "remove"),
    Replayed: refuse("nothing is sent while it pulls"),
    BufferExceeded: to("Overflowed", "more came than is kept for it", "release", "clear"),
    Rejected: refuse("nothing is sent while it pulls"),
    Diverged: ignore("nothing to compare while it pulls"),
    BootstrapTimedOut: to("Absent", "a pull that hangs must not hold the snapshot", "release", "remove"),
    Stale: to("Absent", "dead half-way", "release", "remove"),
    Deregistered: to("Absent", "it stops", "release", "remove"),
    Refused: ignore("a proxy before it may admit no request until it is ready; the deadline of its pull decides"),
    StillRefused: refuse("only a suspect is asked once more"),
    Reached: ignore("it is known to be there")
  },
  Replaying: {
    Registered: to("Bootstrapping", "it starts over", "hand", "clear", "join"),
    Restored: refuse("it is already here"),
    Heartbeat: ignore("alive", "ok"),
    PolledReady: ignore("known"),
    PolledFailed: ignore("a late answer; heartbeats and deliveries tell from here on"),
    Replayed: to("Ready", "it has caught up", "place"),
    BufferExceeded: to("Overflowed", "it falls behind for good", "hand", "clear"),
    Rejected: to("Overflowed", "it cannot go on from where it stands", "hand", "clear"),
    Diverged: to("Overflowed", "its data is wrong", "hand", "clear"),
    BootstrapTimedOut: ignore("it has its data; staleness and overflow end a replay that hangs"),
    Stale: to("Absent", "dead", "hand", "remove"),
    Deregistered: to("Absent", "it stops", "hand", "remove"),
    Refused: to("Suspect", "its process may be gone; the next health call tells"),
    StillRefused: refuse("only a suspect is asked once more"),
    Reached: ignore("it is known to be there")
  },
  Ready: {
    Registered: to("Bootstrapping", "it starts over, or another process took its id", "hand", "clear", "join"),
    Restored: refuse("it is already here"),
    Heartbeat: ignore("alive", "ok"),
    PolledReady: ignore("known"),
    PolledFailed: ignore("a late answer; heartbeats and deliveries tell from here on"),
    Replayed: ignore("live and replayed events are one queue"),
    BufferExceeded: to("Overflowed", "it falls behind for good", "hand", "clear"),
    Rejected: to("Overflowed", "it cannot go on from where it stands", "hand", "clear"),
    Diverged: to("Overflowed", "its data is wrong", "hand", "clear"),
    BootstrapTimedOut: ignore("it is done"),
    Stale: to("Absent", "dead", "hand", "remove"),
    Deregistered: to("Absent", "it stops", "hand", "remove"),
    Refused: to("Suspect", "its process may be gone; the next health call tells"),
    StillRefused: refuse("only a suspect is asked once more"),
    Reached: ignore("it is known to be there")
  },
  Suspect: {
    Registered: to("Bootstrapping", "it is back, and starts over", "hand", "clear", "join"),
    Restored: refuse("it is already here"),
    Heartbeat: ignore("it may have been sent before the refusal; the health call tells", "ok"),
    PolledReady: ignore("what counts is that it was reached"),
    PolledFailed: ignore("what counts is that it was reached"),
    Replayed: refuse("it is not replayed while its state is unknown"),
    BufferExceeded: to("Overflowed", "it falls behind for good", "hand", "clear"),
    Rejected: to("Overflowed", "it cannot go on from where it stands", "hand", "clear"),
    Diverged: to("Overflowed", "its data is wrong", "hand", "clear"),
    BootstrapTimedOut: ignore("it has its data"),
    Stale: to("Absent", "dead", "hand", "remove"),
    Deregistered: to("Absent", "it stops", "hand", "remove"),
    Refused: ignore("calls that were under way say nothing new; the next health call tells"),
    StillRefused: to("Absent", "its process is gone", "hand", "remove"),
    Reached: to("Replaying", "it is there after all; what it missed follows", "replay")
  },
  Overflowed: {
    Registered: to("Bootstrapping", "it starts over, as it was told", "join"),
    Restored: refuse("it is already here"),
    Heartbeat: ignore("it must bootstrap again", "conflict"),
    PolledReady: ignore("of a registration that is over"),
    PolledFailed: ignore("of a registration that is over"),
    Replayed: refuse("nothing is sent any more"),
    BufferExceeded: refuse("nothing is kept any more"),
    Rejected: refuse("nothing is sent any more"),
    Diverged: ignore("it must bootstrap anyway"),
    BootstrapTimedOut: to("Absent", "it was told and did not come", "remove"),
    Stale: to("Absent", "dead", "remove"),
    Deregistered: to("Absent", "it stops", "remove"),
    Refused: ignore("it holds nothing; its deadline decides"),
    StillRefused: refuse("only a suspect is asked once more"),
    Reached: ignore("it must bootstrap all the same")
  }
} as const satisfies Table<Member, MemberEvent, MemberEffect>

export const next = (member: Member, event: MemberEvent): Step<Member, MemberEffect> =>
  step<Member, MemberEvent, MemberEffect>(table, member, event)

/** The state as `/info` shows it (D30). */
export const shown = {
  Absent: "absent",
  Bootstrapping: "bootstrapping",
  Replaying: "replaying",
  Ready: "ready",
  Suspect: "suspect",
  Overflowed: "bootstrapping"
} as const satisfies { readonly [member in Member]: string }

/** Whether the SSP is sent deliveries; a suspect is too, because a successful delivery shows that its process lives. */
export const receives = (member: Member): boolean =>
  member === "Replaying" || member === "Ready" || member === "Suspect"
