/**
 * Schedulers of a log on JetStream: a stream of its own holds each one's last announcement, so that announcements do
 * not lie between the log's messages.
 *
 * The server's times of the messages are used. The newest one counts as now, since this process announces itself as
 * often as the others.
 */
import { Effect } from "effect"
import { noContacts } from "../../core/cluster/term.ts"
import type { LogMember, ReportedMember } from "../../ports/SharedLog.ts"
import type { WalFailed } from "../../ports/Wal.ts"
import * as Frame from "./frame.ts"
import type { Link } from "./link.ts"

/** How long a scheduler without an announcement is known, and the log kept for it. */
const forgottenMs = 600_000
const nanos = 1_000_000

const streamOf = (log: string): string => `svc-members-${log}`

const prefixOf = (log: string): string => `svc.members.${log}`

/** Encoded: a scheduler's name may hold characters that a subject may not. */
const subjectOf = (log: string, name: string): string =>
  `${prefixOf(log)}.${Buffer.from(name === "" ? "-" : name).toString("base64url")}`

export const config = (log: string) => ({
  name: streamOf(log),
  subjects: [`${prefixOf(log)}.*`],
  retention: "limits",
  storage: "file",
  max_msgs: -1,
  max_bytes: -1,
  max_msgs_per_subject: 1,
  max_age: forgottenMs * nanos,
  discard: "old"
})

/** Replaces the announcement of an earlier process of the same scheduler. */
export const announce = (link: Link, log: string, member: LogMember): Effect.Effect<void, WalFailed> =>
  link.tell(subjectOf(log, member.name), JSON.stringify(member))

export const list = (
  link: Link,
  log: string,
  withinMs: number
): Effect.Effect<ReadonlyArray<ReportedMember>, WalFailed> =>
  Effect.gen(function* () {
    const stream = streamOf(log)
    const { error, state } = yield* link.api(`STREAM.INFO.${stream}`, { subjects_filter: `${prefixOf(log)}.*` })
    if (error !== undefined) return yield* link.refusal(error)
    const subjects = Object.keys((state as { readonly subjects?: object }).subjects ?? {})
    const found = yield* Effect.forEach(subjects, (subject) => link.get(stream, { last_by_subj: subject }), {
      concurrency: 16
    })
    const told = found
      .filter((each) => each !== undefined)
      .map(({ at, data }) => ({ at, member: { ...noContacts, ...(JSON.parse(Frame.textOf(data)) as LogMember) } }))
    const now = told.reduce((latest, { at }) => Math.max(latest, at), 0)
    return told
      .filter(({ at }) => now - at <= withinMs)
      .map(({ at, member }) => ({ ...member, agoMs: now - at }))
      .sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : 0))
  })
