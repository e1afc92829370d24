/**
 * Counts registrations, overflows and replays of the pool's members (D34).
 *
 * Compares the state after each round of decisions, so that the state machine knows no metrics; a round costs a look at
 * a few members.
 */
import { HashMap } from "effect"
import type { SspMember, State } from "../../core/cluster/state.ts"
import type { Meters } from "../../core/telemetry/meters.ts"
import type { ProgressShape } from "../../ports/Progress.ts"
import type { PoolShape } from "./Pool.ts"

interface Seen {
  readonly registration: number
  readonly state: SspMember["state"]
  /** Replay in progress, and the position where it began. */
  readonly replay: { readonly from: number; readonly task: ReturnType<ProgressShape["open"]> } | undefined
}

class Watch {
  private readonly known = new Map<string, Seen>()
  private members: State["members"] | undefined

  constructor(
    private readonly meters: Meters,
    private readonly progress: ProgressShape
  ) {}

  look({ members }: State): void {
    if (members === this.members) return
    const first = this.members === undefined
    this.members = members
    for (const member of HashMap.values(members)) this.member(member, first)
    if (this.known.size === HashMap.size(members)) return
    for (const [ssp, seen] of this.known) {
      if (HashMap.has(members, ssp)) continue
      seen.replay?.task.close(false)
      this.known.delete(ssp)
    }
  }

  private member({ queue: { acked }, registration, ssp, state, target }: SspMember, first: boolean): void {
    const before = this.known.get(ssp)
    // An overflow voids the old registration with a number of its own, which is no registration of the SSP.
    if (!first && state !== "Overflowed" && before?.registration !== registration) this.meters.registrations.add()
    if (state === "Overflowed" && before?.state !== "Overflowed") this.meters.overflows.add()
    let replay = before?.replay
    if (replay !== undefined && (state !== "Replaying" || before?.registration !== registration)) {
      replay.task.close(state === "Ready")
      replay = undefined
    }
    if (state === "Replaying") {
      replay ??= { from: acked, task: this.progress.open("replay", ssp, "events") }
      replay.task.expect(Math.max(0, target - replay.from))
      replay.task.reach(Math.max(0, Math.min(acked, target) - replay.from))
    }
    this.known.set(ssp, { registration, state, replay })
  }
}

/** Counts from now on; members that are there already were counted by the previous process. */
export const watch = (pool: Pick<PoolShape, "state" | "watch">, meters: Meters, progress: ProgressShape): void => {
  const watching = new Watch(meters, progress)
  watching.look(pool.state())
  pool.watch(() => watching.look(pool.state()))
}
