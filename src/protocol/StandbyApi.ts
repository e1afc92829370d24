/**
 * Endpoints that a standby scheduler answers itself; all other requests are forwarded to the leader.
 *
 * The same declarations as the scheduler's own endpoints.
 */
import * as HttpApi from "@effect/platform/HttpApi"
import * as HttpApiGroup from "@effect/platform/HttpApiGroup"
import * as Errors from "./errors.ts"
import { health, livez, metrics, progress, readyz, replica } from "./SchedulerApi.ts"

class Monitor extends HttpApiGroup.make("monitor").add(metrics).add(health).add(progress).add(livez).add(readyz) {}

class Replica extends HttpApiGroup.make("replica").add(replica) {}

export class StandbyApi extends HttpApi.make("standby")
  .add(Monitor)
  .add(Replica)
  .addError(Errors.InvalidRequest)
  .addError(Errors.NotFound)
  .addError(Errors.RateLimited)
  .addError(Errors.NotLeader)
  .addError(Errors.Internal) {}
