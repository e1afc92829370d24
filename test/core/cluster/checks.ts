/**
 * What must hold in a cluster after every step, and what must hold once it has healed.
 *
 * They read the pool's state and the models' side by side and share no logic with either.
 */
import { HashMap, HashSet, SortedMap } from "effect"
import * as State from "../../../src/core/cluster/state.ts"
import * as Waiting from "../../../src/core/cluster/waiting.ts"
import { config, tickMs, type World } from "./world.ts"

const fail = (what: string): never => {
  throw new Error(what)
}

const views = (world: World): void => {
  const held = new Map<string, string>()
  for (const member of HashMap.values(world.state.members)) {
    if (HashSet.size(member.views) > 0 && (member.state === "Bootstrapping" || member.state === "Overflowed"))
      fail(`${member.ssp} holds views while ${member.state}`)
    for (const key of member.views) {
      if (held.has(key)) fail(`${key} is on ${held.get(key)} and ${member.ssp}`)
      held.set(key, member.ssp)
    }
  }
  for (const view of HashMap.values(world.state.views)) {
    const owner = State.ownerOf(world.state, view.view)?.ssp
    if (owner !== held.get(view.view)) fail(`${view.view} is with ${owner}, filed under ${held.get(view.view)}`)
    if (
      (owner === undefined || !view.placed) &&
      view.op === undefined &&
      !Waiting.has(world.state.waitingViews, view.view)
    )
      fail(`${view.view} is forgotten`)
    held.delete(view.view)
  }
  const living = [...HashMap.values(world.state.views)].filter((view) => !view.gone).length
  if (SortedMap.size(world.state.expiries) !== living)
    fail(`${SortedMap.size(world.state.expiries)} expiries of ${living} views`)
  if (held.size > 0) fail(`filed but unknown: ${[...held.keys()].join()}`)
  for (const job of HashMap.values(world.state.jobs)) {
    if (
      (State.assigneeOf(world.state, job.job) === undefined || !job.told) &&
      job.op === undefined &&
      !Waiting.has(world.state.waitingJobs, job.job)
    )
      fail(`${job.job} is forgotten`)
  }
}

const positions = (world: World): void => {
  for (const member of HashMap.values(world.state.members)) {
    const { queue, state } = member
    if (state === "Overflowed") continue
    if (
      state === "Ready" &&
      queue.acked < member.target &&
      !world.ssps.some((ssp) => ssp.id === member.ssp && ssp.amnesia)
    )
      fail(`${member.ssp} is Ready at ${queue.acked}, before ${member.target}`)
    const receives = state === "Ready" || state === "Replaying" || state === "Suspect"
    // Sent back once, it is not sent back for what comes while it pulls, nor for what it then has to replay (D55).
    const { sentBack } = member
    const since = sentBack && state !== "Ready" ? Math.max(queue.acked, member.target) : queue.acked
    if (!(sentBack && state === "Bootstrapping") && world.head - since > config.maxBuffer)
      fail(`${member.ssp} buffers ${world.head - since} (${state}, ${sentBack ? "sent back" : "the first time"})`)
    if (queue.acked < world.first - 1) fail(`${member.ssp} stands at ${queue.acked}, the log begins at ${world.first}`)
    if (queue.flight !== undefined && (queue.flight.from !== queue.acked + 1 || !receives))
      fail(`${member.ssp} is sent ${queue.flight.from}, stands at ${queue.acked}, ${state}`)
    const model = world.ssps.find((ssp) => ssp.url === member.url)
    const same =
      model !== undefined &&
      model.state === "ready" &&
      !model.amnesia &&
      model.registration === world.saved.members.get(member.ssp)?.registration
    if (receives && same && queue.acked > model.applied)
      fail(`${member.ssp} has applied ${model.applied}, is thought to have ${queue.acked}`)
  }
}

const freezes = (world: World): void => {
  const { freeze, phase } = world.state
  if ((freeze === undefined) !== (world.frozen === undefined) || freeze?.id !== world.frozen?.id)
    fail("the shell's snapshot is not the pool's")
  if ((phase === "Frozen") !== (freeze !== undefined))
    fail(`${phase} with${freeze === undefined ? "out" : ""} a snapshot`)
  if (freeze === undefined) return
  if (world.now > freeze.at + 1.5 * config.bootstrapTimeoutMs + 2 * tickMs)
    fail(`a snapshot of ${freeze.at} is held at ${world.now}`)
  for (const owner of freeze.owners.keys())
    if (State.member(world.state, owner)?.state !== "Bootstrapping")
      fail(`${owner} holds the snapshot and does not pull`)
}

export const always = (world: World): void => {
  views(world)
  positions(world)
  freezes(world)
}

/** After faults have ended and time has passed. */
export const healed = (world: World, wanted: ReadonlyMap<string, boolean>): void => {
  const alive = world.ssps.filter((ssp) => ssp.alive)
  for (const ssp of alive) {
    const member = State.member(world.state, ssp.id)
    if (member?.state !== "Ready" || member.incarnation !== ssp.incarnation)
      fail(`${ssp.incarnation} is ${member?.state} (${member?.incarnation}); itself ${ssp.state}`)
    if (ssp.applied !== world.head || member?.queue.acked !== world.head)
      fail(`${ssp.id} has ${ssp.applied}, thought ${member?.queue.acked}, of ${world.head}`)
    if (member !== undefined && HashMap.size(member.strays) > 0) fail(`${ssp.id} has strays`)
    for (const key of ssp.views.keys())
      if (State.ownerOf(world.state, key)?.ssp !== ssp.id) fail(`${ssp.id} still holds ${key}`)
  }
  if (HashMap.size(world.state.members) !== alive.length) fail("there are SSPs in the pool that are not alive")
  for (const view of HashMap.values(world.state.views)) {
    const holders = alive.filter((ssp) => ssp.views.get(view.view) === view.assignment)
    if (holders.length !== 1 || !view.placed || view.op !== undefined)
      fail(`${view.view} is held by ${holders.map((ssp) => ssp.id).join() || "nobody"}`)
  }
  for (const key of world.rows.keys())
    if (State.view(world.state, key) === undefined) fail(`the database still has ${key}, which nobody has`)
  for (const [key, want] of wanted)
    if (want !== (State.view(world.state, key) !== undefined)) fail(`${key} should ${want ? "" : "not "}be there`)
  for (const job of HashMap.values(world.state.jobs))
    if (!job.told || State.assigneeOf(world.state, job.job) === undefined) fail(`${job.job} waits`)
  const counts = alive.map((ssp) => ssp.views.size)
  if (Math.max(...counts) - Math.min(...counts) > alive.length) fail(`views are spread ${counts.join()}`)
  if (world.state.freeze !== undefined || world.state.phase !== "Ready") fail(`still ${world.state.phase}`)
  if (world.saved.views.size !== HashMap.size(world.state.views)) fail("what is persisted is not what is known")
}
