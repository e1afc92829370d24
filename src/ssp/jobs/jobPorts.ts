/**
 * The ports that running jobs needs: stores, backends, receivers of results.
 *
 * In one file, because a node without job tables needs none of them.
 */
import { Layer } from "effect"
import { Backend } from "../../ports/Backend.ts"
import { JobReports } from "../../ports/JobReports.ts"
import { DatabaseJobs } from "../../ports/JobStore.ts"

type JobPorts = Backend | JobReports | DatabaseJobs

/** Ports without database, scheduler and backend. */
export const layerNone: Layer.Layer<JobPorts> = Layer.mergeAll(
  Backend.layerNone,
  JobReports.layerNone,
  DatabaseJobs.layerNone
)
