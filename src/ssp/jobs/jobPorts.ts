/**
 * What the running of jobs needs from outside, as a whole: stores, backends, receivers of results.
 *
 * Together, because a node without job tables needs none of them.
 */
import { Layer } from "effect"
import { Backend } from "../../ports/Backend.ts"
import { JobReports } from "../../ports/JobReports.ts"
import { DatabaseJobs } from "../../ports/JobStore.ts"

type JobPorts = Backend | JobReports | DatabaseJobs

/** No database, no scheduler that is told, and no backend that is called. */
export const layerNone: Layer.Layer<JobPorts> = Layer.mergeAll(
  Backend.layerNone,
  JobReports.layerNone,
  DatabaseJobs.layerNone
)
