/**
 * Leadership of a log that several schedulers can reach: what each one does, decided from the log's own row.
 *
 * Safety rests neither on this file nor on a clock: a take-over is a conditional write that expects the row as it was
 * last read, and every append expects epoch and position, so the engine refuses a process that lags or stood still.
 * This file decides when to try, when to stop answering, when to give up or end, and the outcome of an attempt whose
 * answer was lost. A clock is a process's own, only grows, and is never compared with another's.
 */

/** The log's row: its leader, its end, and a number that grows while the leader lives. */
export interface Frame {
  readonly epoch: number
  readonly lastSeq: number
  readonly beat: number
  /** The leading process, by a name that no other start has; undefined: it has handed over, or there was none. */
  readonly leader: string | undefined
}

/** Connections of a follower to the other schedulers, as it reports them. */
export interface Contacts {
  readonly self: string
  /** Processes that have answered the follower within a lease. */
  readonly reaches: ReadonlyArray<string>
  /** The leader's process, if it has answered nothing for a lease. */
  readonly misses: string | undefined
  /** SSPs or clients have called the follower within two leases, since it lost the leader. */
  readonly isAsked: boolean
}

/**
 * A follower's contact with other processes: `near`: another scheduler answers it; `asked`: none does, but SSPs or
 * clients call it; `apart`: neither.
 */
export type Contact = "near" | "asked" | "apart"

/** Contacts of a scheduler that reports none. */
export const noContacts: Omit<Contacts, "self"> = { reaches: [], misses: undefined, isAsked: false }

/** Settings that decide about leadership. */
export interface Rules {
  /** Name of this process, as in {@link Frame}. */
  readonly self: string
  /** Silence of a leader in milliseconds after which another takes over. */
  readonly leaseMs: number
}

interface Follower {
  readonly role: "follower"
  /** The row as it was last read. */
  readonly frame: Frame | undefined
  readonly lookedAt: number
  /** For how long the row has not changed. */
  readonly silentMs: number
  /** A take-over of this process is in flight. */
  readonly claims: boolean
}

interface Leader {
  readonly role: "leader"
  readonly epoch: number
  /** When the last accepted write of this term was begun. */
  readonly heardAt: number
  readonly beatAt: number
  /** When an SSP that hears the answers last called; before the first call, when the term began. */
  readonly spokenAt: number
  /** A scheduler or an SSP has reached this process in this term. */
  readonly wasReached: boolean
}

/** `fenced`: another process leads, or may; `stopped`: told to stop. Both are final. */
export type Term =
  | Follower
  | Leader
  | { readonly role: "fenced"; readonly message: string }
  | { readonly role: "stopped" }

/** Times are milliseconds of this process's clock; `sentAt`: begin of the call that the fact is the answer to. */
export type Fact =
  /** The row was read. */
  | { readonly tag: "Looked"; readonly sentAt: number; readonly frame: Frame; readonly standing?: Contact }
  /** A take-over was answered: the row it wrote, or undefined if it was refused. */
  | { readonly tag: "Claimed"; readonly sentAt: number; readonly frame: Frame | undefined }
  /** A take-over may have been carried out. */
  | { readonly tag: "ClaimUnknown" }
  /** An append or a beat of this term was accepted. */
  | { readonly tag: "Accepted"; readonly sentAt: number }
  /** A write was refused, because another scheduler has a later epoch. */
  | { readonly tag: "Superseded" }
  /** An SSP that hears this process's answers has called. */
  | { readonly tag: "Spoken" }
  /** Reports of the followers that have called within a lease. */
  | { readonly tag: "Told"; readonly ways: ReadonlyArray<Contacts> }
  | { readonly tag: "Tick" }
  | { readonly tag: "Stopped" }

/** An effect that the shell carries out. */
export type Order =
  /** Take over, if the row is still this one. */
  | { readonly tag: "Claim"; readonly expected: Frame }
  /** Begin the term: read the rest of the log, through `frame.lastSeq`, and open for writing. */
  | { readonly tag: "Lead"; readonly frame: Frame }
  | { readonly tag: "Beat" }
  /** Give the log back, if this process leads it. */
  | { readonly tag: "HandOver" }
  /** End the process: another leads, or is about to. */
  | { readonly tag: "End"; readonly message: string }

type Decision = readonly [term: Term, orders: ReadonlyArray<Order>]

/** The state of a process at its start: it follows, and has read nothing yet. */
export const initial: Follower = {
  role: "follower",
  frame: undefined,
  lookedAt: Number.NEGATIVE_INFINITY,
  silentMs: 0,
  claims: false
}

/** Longest time between two writes of a leader; of the time between two looks, only this much counts as its silence. */
export const beatMs = ({ leaseMs }: Rules): number => leaseMs / 3

/** After this time without an accepted write a leader answers no requests any more. */
const patienceMs = ({ leaseMs }: Rules): number => 0.8 * leaseMs

/** A leader that no SSP calls for this long may be cut off (D70). */
export const apartMs = ({ leaseMs }: Pick<Rules, "leaseMs">): number => 2 * leaseMs

/** Whether this process may answer requests as the leader. */
export const mayAnswer = (rules: Rules, term: Term, now: number): boolean =>
  term.role === "leader" && now - term.heardAt < patienceMs(rules)

const isSame = (a: Frame | undefined, b: Frame): boolean =>
  a !== undefined && a.epoch === b.epoch && a.lastSeq === b.lastSeq && a.beat === b.beat && a.leader === b.leader

const lead = (frame: Frame, heardAt: number): Decision => [
  { role: "leader", epoch: frame.epoch, heardAt, beatAt: heardAt, spokenAt: heardAt, wasReached: false },
  [{ tag: "Lead", frame }]
]

const fenced = (message: string): Decision => [{ role: "fenced", message }, [{ tag: "End", message }]]

/** How long a follower leaves a log that was given up to followers with better contact. */
const yieldsMs = ({ leaseMs }: Rules): { readonly [standing in Contact]: number } => ({
  near: 0,
  asked: leaseMs / 6,
  apart: leaseMs
})

/** A process that stood still, or could not reach the engine, did not see whether the leader was silent. */
const looked = (
  rules: Rules,
  term: Follower,
  now: number,
  { frame, sentAt, standing = "near" }: Fact & { readonly tag: "Looked" }
): Decision => {
  // A take-over of this process succeeded, but its answer was lost.
  if (frame.leader === rules.self) return lead(frame, sentAt)
  const silentMs = isSame(term.frame, frame) ? term.silentMs + Math.min(now - term.lookedAt, beatMs(rules)) : 0
  const next: Follower = { ...term, frame, lookedAt: now, silentMs }
  const isDue = silentMs >= (frame.leader === undefined ? yieldsMs(rules)[standing] : rules.leaseMs)
  return isDue && !term.claims ? [{ ...next, claims: true }, [{ tag: "Claim", expected: frame }]] : [next, []]
}

const asFollower = (rules: Rules, term: Follower, now: number, fact: Fact): Decision => {
  switch (fact.tag) {
    case "Looked":
      return looked(rules, term, now, fact)
    case "Claimed":
      return fact.frame === undefined ? [{ ...term, claims: false, silentMs: 0 }, []] : lead(fact.frame, fact.sentAt)
    case "ClaimUnknown":
      return [{ ...term, claims: false }, []]
    case "Stopped":
      return [{ role: "stopped" }, term.claims ? [{ tag: "HandOver" }] : []]
    default:
      return [term, []]
  }
}

/**
 * The follower that should lead instead of `self`: it does not reach the leader, and another scheduler reaches it.
 * Calls of SSPs or clients count only if the leader was reached before: otherwise two schedulers, each reached by half
 * of the world, would take turns.
 */
const heirOf = (self: string, wasReached: boolean, ways: ReadonlyArray<Contacts>): Contacts | undefined =>
  ways.find(
    (heir) =>
      heir.misses === self &&
      ((wasReached && heir.isAsked) || ways.some((other) => other !== heir && other.reaches.includes(heir.self)))
  )

const told = (rules: Rules, term: Leader, now: number, { ways }: Fact & { readonly tag: "Told" }): Decision => {
  if (ways.some(({ reaches }) => reaches.includes(rules.self))) return [{ ...term, wasReached: true }, []]
  const heir = now - term.spokenAt < apartMs(rules) ? undefined : heirOf(rules.self, term.wasReached, ways)
  if (heir === undefined) return [term, []]
  const message = `no other scheduler and no SSP reaches this one, and ${heir.self} can be reached: it gives up its lead`
  return [{ role: "fenced", message }, [{ tag: "HandOver" }, { tag: "End", message }]]
}

const asLeader = (rules: Rules, term: Leader, now: number, fact: Fact): Decision => {
  switch (fact.tag) {
    case "Accepted":
      return [{ ...term, heardAt: Math.max(term.heardAt, fact.sentAt) }, []]
    case "Superseded":
      return fenced("another scheduler has taken the log over")
    case "Spoken":
      return [{ ...term, spokenAt: now, wasReached: true }, []]
    case "Told":
      return told(rules, term, now, fact)
    case "Stopped":
      return [{ role: "stopped" }, [{ tag: "HandOver" }]]
    case "Tick":
      if (now - term.heardAt >= rules.leaseMs)
        return fenced(`no write was answered for ${rules.leaseMs} ms (SVC_LEASE_MS), so another scheduler may lead`)
      return now - Math.max(term.heardAt, term.beatAt) >= beatMs(rules)
        ? [{ ...term, beatAt: now }, [{ tag: "Beat" }]]
        : [term, []]
    default:
      return [term, []]
  }
}

/** The term after a fact at `now`, and the orders to carry out. */
export const decide = (rules: Rules, term: Term, now: number, fact: Fact): Decision => {
  switch (term.role) {
    case "follower":
      return asFollower(rules, term, now, fact)
    case "leader":
      return asLeader(rules, term, now, fact)
    default:
      return [term, []]
  }
}

/** An append: `count` records behind `lastSeq`, in the writer's epoch. */
export interface Attempt {
  readonly epoch: number
  readonly lastSeq: number
  readonly count: number
}

/**
 * Outcome of an append whose answer was lost, by the row as it is afterwards. `absent`: not yet there, but it may be on
 * its way, so the same records are sent again at the same position, and no others: the engine takes one of the two.
 * `damaged`: records are there, or gone, that no single writer can have written.
 */
export const outcomeOf = (
  { count, epoch, lastSeq }: Attempt,
  frame: Pick<Frame, "epoch" | "lastSeq">
): "there" | "absent" | "superseded" | "damaged" => {
  if (frame.epoch !== epoch) return "superseded"
  if (frame.lastSeq === lastSeq) return "absent"
  return frame.lastSeq === lastSeq + count ? "there" : "damaged"
}
