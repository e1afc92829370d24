/** `GET /views` of the scheduler: the views of the cluster in the pool's current state. */
import { Effect, HashMap } from "effect"
import * as Quarantine from "../../core/cluster/poolQuarantine.ts"
import * as State from "../../core/cluster/state.ts"
import { containsText, page } from "../../core/listing.ts"
import { viewKey } from "../../core/view/viewId.ts"
import { isoOf } from "../../core/view/viewTimes.ts"
import type { SspClientShape } from "../../ports/SspClient.ts"
import type { AssignedView, AssignedViews } from "../../protocol/overview.ts"
import { isFormat } from "../../protocol/wire.ts"

/** Body of the registration. The schema has checked it, but its type is lost. */
const bodyOf = ({ spec: { body } }: State.View): { readonly [field: string]: unknown } =>
  typeof body === "object" && body !== null ? { ...body } : {}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

/** A view as listings show it. `aheadMs`: how far the pool's steady time is ahead of the time of day. */
const assigned =
  (state: State.State, aheadMs: number) =>
  (view: State.View): typeof AssignedView.Type => {
    const body = bodyOf(view)
    const member = State.memberAt(state, view.home)
    const owner = member?.ssp ?? null
    return {
      id: textOf(body["id"]),
      query: textOf(body["surql"]),
      params: body["params"] ?? null,
      format: isFormat(body["format"]) ? body["format"] : "flat",
      client_id: textOf(body["clientId"]),
      ttl_seconds: view.spec.ttlMs / 1000,
      last_active_at: isoOf(view.spec.lastActiveAt - aheadMs),
      owner,
      state:
        owner === null
          ? Quarantine.of(state, view.spec) === undefined
            ? "waiting"
            : "quarantined"
          : member?.state === "Suspect"
            ? "suspect"
            : view.placed && view.op === undefined
              ? "placed"
              : "moving",
      assigned_at: Math.max(0, Math.floor((view.assignedAt - aheadMs) / 1000))
    }
  }

export const views = (
  state: State.State,
  aheadMs: number,
  {
    after,
    limit,
    search,
    ssp
  }: {
    readonly after: string | undefined
    readonly limit: number
    readonly search: string | undefined
    readonly ssp: string | undefined
  }
): typeof AssignedViews.Type => {
  const wanted = (view: State.View): boolean => {
    if (view.gone || (ssp !== undefined && State.memberAt(state, view.home)?.ssp !== ssp)) return false
    if (search === undefined || search === "") return true
    const body = bodyOf(view)
    return containsText(search, textOf(body["id"]), textOf(body["clientId"]), textOf(body["surql"]))
  }
  const { items, next } = page(HashMap.entries(state.views), {
    after: after === undefined ? undefined : (viewKey(after) ?? after),
    limit,
    wanted
  })
  return {
    views: items.map(assigned(state, aheadMs)),
    total: State.viewCount(state),
    next: next === undefined ? null : textOf(bodyOf(items.at(-1)!)["id"])
  }
}

/** The views with the highest cost, as their SSPs report; those of an SSP that does not answer are missing. */
export const costliest = (
  state: State.State,
  aheadMs: number,
  client: Pick<SspClientShape, "costliest">,
  {
    limit,
    search,
    ssp
  }: { readonly limit: number; readonly search: string | undefined; readonly ssp: string | undefined }
): Effect.Effect<typeof AssignedViews.Type> =>
  Effect.map(
    Effect.forEach(
      State.ready(state).filter((member) => ssp === undefined || member.ssp === ssp),
      (member) =>
        Effect.map(client.costliest(member, limit, search), (answer) =>
          (answer?.views ?? []).flatMap(({ id, total_cost }) => {
            const view = State.view(state, viewKey(id) ?? "")
            // A view that has moved may still be listed by its former SSP.
            const isThere = view !== undefined && !view.gone && State.memberAt(state, view.home)?.ssp === member.ssp
            return isThere ? [{ ...assigned(state, aheadMs)(view), total_cost }] : []
          })
        ),
      { concurrency: "unbounded" }
    ),
    (found) => {
      const views = found.flat().sort((a, b) => b.total_cost - a.total_cost || (a.id < b.id ? -1 : 1))
      return { views: views.slice(0, limit), total: State.viewCount(state), next: null }
    }
  )
