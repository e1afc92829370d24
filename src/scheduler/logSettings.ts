/** Settings of a log that several schedulers reach. */
import * as Address from "../core/settings/address.ts"
import * as LogUrl from "../core/settings/logUrl.ts"
import * as Settings from "../core/settings/settings.ts"
import * as SnapshotUrl from "../core/settings/snapshotUrl.ts"

export const logKnobs = {
  logUrl: {
    ...Settings.secret("SVC_LOG_URL", {
      meaning:
        "Server that keeps log and pool instead of files: PostgreSQL (14 or later; optional package `@effect/sql-pg`), as `postgres://user:password@host/database?log=name`, or NATS with JetStream (2.9 or later; optional package `@nats-io/transport-node`), as `nats://user:password@host,host/name`, `tls://` for TLS; each cluster has a log name of its own, `svc` where none is given. The replica stays in its folder. Of several schedulers with one log one leads, and the others stand by."
    }),
    allowed: LogUrl.allowed,
    read: (text: string) => (LogUrl.parse(text) === undefined ? undefined : text)
  },
  logDurability: Settings.choice("SVC_LOG_DURABILITY", ["flushed", "replicated", "relaxed"], undefined, {
    meaning:
      "The least that must be so of a write before it is answered. `flushed`: it is on disk; a PostgreSQL that has `fsync` or `synchronous_commit` off is refused, and so is NATS. `replicated`, of NATS only: most of SVC_LOG_REPLICAS servers have it, perhaps in memory. `relaxed`: a power failure may lose it.",
    defaultText: "flushed with PostgreSQL; with NATS replicated, or relaxed where SVC_LOG_REPLICAS is 1"
  }),
  logReplicas: Settings.integer("SVC_LOG_REPLICAS", 3, [1, 5], {
    unit: "",
    meaning:
      "Servers of a NATS cluster that keep the log of SVC_LOG_URL: with 3 one of them may fail, with 1 its disk is the only copy."
  }),
  leaseMs: Settings.integer("SVC_LEASE_MS", 3000, [1000, 600_000], {
    unit: "ms",
    meaning:
      "Silence of the scheduler that leads the log of SVC_LOG_URL after which another one takes over. A leader whose writes are not answered for so long ends."
  }),
  logCopies: Settings.integer("SVC_LOG_COPIES", 2, [1, 16], {
    unit: "",
    meaning:
      "Copies there must be of what is cut from the log of SVC_LOG_URL: replicas on the disks of schedulers, the leader's among them, and a snapshot where SVC_SNAPSHOT_URL keeps them; 1 for a scheduler without others, whose disk then holds the only copy of what was cut."
  }),
  snapshotUrl: Settings.text("SVC_SNAPSHOT_URL", {
    meaning:
      "Where a scheduler gets a replica whose own is behind the beginning of the log of SVC_LOG_URL: `peer:` from another scheduler; `file:///folder` from the newest snapshot in a folder that all of them reach, which the leader writes, else from another scheduler; `log:` likewise, from an object store that the NATS servers of the log keep, with SVC_LOG_REPLICAS copies. With either the log is never cut above the newest snapshot that has been read back.",
    defaultText: "peer:",
    allowed: SnapshotUrl.allowed,
    read: (text) => (SnapshotUrl.parse(text) === undefined ? undefined : text)
  }),
  snapshotIntervalSecs: Settings.integer("SVC_SNAPSHOT_INTERVAL_SECS", 900, [1, 604_800], {
    unit: "s",
    meaning:
      "Age of the newest snapshot where SVC_SNAPSHOT_URL keeps them at which the leader writes another one, where there is something to cut from the log; it keeps the newest two."
  }),
  snapshotTimeoutSecs: Settings.integer("SVC_SNAPSHOT_TIMEOUT_SECS", 3600, [1, 86_400], {
    unit: "s",
    meaning: "Longest time that a snapshot of the replica may take to be read, by another scheduler or any caller."
  }),
  advertise: Settings.text("SVC_SCHEDULER_ADVERTISE", {
    meaning: "Address at which the other schedulers of the log of SVC_LOG_URL reach this one.",
    defaultText: "from SVC_SCHEDULER_INGEST_HOST and the port",
    allowed: "host:port or an http:// or https:// address",
    read: (text) => (Address.advertised(text) === undefined ? undefined : text)
  })
}
